// Package memory has the CPU device's memory.
//
// Input: sizes in bytes. Output: blocks, aligned to 64 bytes, that the garbage collector neither
// scans nor moves. Read pool.go first.
//
// A Pool hands out buffers of tensors, lends scratch memory to launches, and bounds the sum of both.
// It takes blocks from the system by regions.go, which the map_*.go files serve on each system. An
// Arena is working memory that one thread keeps.
//
// Engine part: no compatibility promise; use package millrace.
package memory
