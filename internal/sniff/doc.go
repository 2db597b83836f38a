// Package sniff guesses the format of an unexpected file: readers of files add it to their errors,
// with advice.
//
// Input: the first bytes of a file. Output: a sentence that names its format. Read sniff.go first.
//
// Engine part: no compatibility promise; use package millrace.
package sniff
