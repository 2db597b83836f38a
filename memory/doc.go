// Package memory manages the device's live buffers: the readers of each, the return of a buffer
// after its last reader, the layout of tensors in buffers, and copies from and to the host.
//
// Engine part: no compatibility promise; use package millrace.
package memory
