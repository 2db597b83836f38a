package runtime

// Sharer is a device whose kernels can use memory of Go's heap like device memory. A program can
// then read and write tensors without calling the device. The program and the code that runs
// launches must agree on when it may do so.
type Sharer interface {
	// AllocShared is Alloc in Go's heap. The memory is zeroed and has the alignment that the
	// device needs. The garbage collector keeps it while anything refers to it: Free, like Close,
	// only ends the device's use of it.
	AllocShared(bytes int64) (Buffer, error)
	// Shared returns the memory of a buffer that AllocShared made, nil for other buffers.
	Shared(Buffer) []byte
}
