// Package operror has the errors that name an op: which one, on what shapes, and the line
// of the program that called it, which it finds on the stack.
//
// Input: an op's name, its shapes and a cause. Output: an [Error] with the line of the program.
// Read error.go first.
//
// Engine part: no compatibility promise; use package millrace.
package operror
