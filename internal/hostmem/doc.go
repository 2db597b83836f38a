// Package hostmem tells how much memory this process may use. The CPU device allocates no more, and
// nothing larger is read into Go's memory.
//
// Input: limits of the operating system and of control groups. Output: a number of bytes. Read
// hostmem.go first.
//
// Engine part: no compatibility promise; use package millrace.
package hostmem
