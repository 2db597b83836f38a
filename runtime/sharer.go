package runtime

// Sharer is a device whose kernels work on memory of Go's heap as on its own, so
// that programs read and write tensors without it. When they may do so is
// between the program and whoever runs launches.
type Sharer interface {
	// AllocShared is Alloc in Go's heap. The memory is zeroed and begins where the
	// device wants it to. It is there for as long as anybody holds it: Free ends
	// its use by the device only, and so does Close.
	AllocShared(bytes int64) (Buffer, error)
	// Shared is the memory of a buffer that AllocShared made, nil for others.
	Shared(Buffer) []byte
}
