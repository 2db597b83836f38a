// Package machine holds machine code in memory and calls it, without cgo and in every build. Code
// is copied into its own pages, which become executable and are never written again, because other
// goroutines may be running in them.
//
// Input: bytes of machine code. Output: a [Code], whose functions [Call] calls. Read code.go first.
//
// Engine part: no compatibility promise; use package millrace.
package machine
