// Package memory manages the device's live buffers: the readers of each, the return of a buffer
// after its last reader, the layout of tensors in buffers, and copies from and to the host.
//
// Input: sizes in bytes, and who reads a buffer. Output: a [Block], whose buffer returns to the
// [Pool] after its last reader. Read block.go first.
//
// Engine part: no compatibility promise; use package millrace.
package memory
