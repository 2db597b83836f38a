// Package tensorfile is the common part of the packages npy and safetensors: it writes a file such
// that it appears complete or not at all, and reads no more into memory than there is.
//
// Input: a path and the bytes to write, or a reader and the bytes that it promises. Output: a
// complete file, or a reader that allocates only what has arrived. Read save.go first.
//
// Engine part: no compatibility promise; use package millrace.
package tensorfile
