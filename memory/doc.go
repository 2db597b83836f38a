// Package memory knows the device's live buffers: who reads each, when nobody does any
// more, how tensors lie in them, and how their elements come from the host and back.
//
// Engine part: no compatibility promise; use package millrace.
package memory
