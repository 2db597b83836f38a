// Package operror has the errors that name an op: which one, on what shapes, and the line
// of the program that called it, which it finds on the stack.
//
// Engine part: no compatibility promise; use package millrace.
package operror
