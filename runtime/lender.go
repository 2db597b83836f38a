package runtime

// Lender is a device whose memory the host can read and write in place.
type Lender interface {
	// Lend returns the memory of a buffer, with elements as the host has them, until the buffer is
	// freed. It is nil if there is none. The code that runs launches must know when it is in use.
	Lend(Buffer) []byte
	// Abandon says that something else may use the memory of a buffer for ever. The device may go on
	// to use it too, but neither Free nor Close ends or reuses it.
	Abandon(Buffer)
}
