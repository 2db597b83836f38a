// Package paired compares times measured in pairs, one right after the other: a disturbance of one
// of a pair disturbs the other as well.
//
// Input: two lists of times, measured in pairs. Output: an [Estimate] of their ratio. Read
// paired.go first.
//
// Engine part: no compatibility promise; use package millrace.
package paired
