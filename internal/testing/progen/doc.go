// Package progen makes random valid tensor programs and values to run them on, and shrinks large
// failing programs. It reads the op table, so a new row of a known class is covered at once; its
// own test fails for a row that it never uses.
//
// Input: a seed, or a fuzzer's bytes, and a [Config]. Output: a valid ir.Graph and values for its
// inputs. Read progen.go first.
//
// Engine part: no compatibility promise; use package millrace.
package progen
