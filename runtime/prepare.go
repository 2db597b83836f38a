package runtime

// Preparer is a device that prepares a list of launches once and runs it many times, for programs
// that repeat the same work with different buffers.
type Preparer interface {
	// Prepare prepares a list with its buffers. It returns nil if the list cannot be prepared, or
	// not yet, for example while a compiler works on it. The caller may reuse the slice, but not
	// the data that it points to, which must never change. The contents of the buffers in own are
	// not needed after a run: the device may keep these values out of memory altogether.
	Prepare(list []Launch, own []Buffer) Prepared
}

// Prepared is a list of launches that is ready to run. Its methods are called one at a time.
type Prepared interface {
	// Set replaces the buffer at the given places, which must have one. It returns false, and
	// changes nothing, if the new buffer does not fit; the launches must then be run by
	// Device.Run. Where one of two operands is written, the two must stay different buffers if
	// they were different, and stay the same buffer if they were the same: the decision which
	// launches run in parallel depends on it.
	Set([]Place, Buffer) bool
	// Run does the same as Device.Run of the list.
	Run() error
	// Call runs the list n times if a run is a single call of at most some microseconds that
	// cannot fail. Otherwise it runs nothing and returns false. Call(0) only tells which. The
	// caller makes sure that the device is not closed meanwhile. The device's counters lack these
	// runs until Count.
	Call(n int) bool
	// Count adds the runs by Call to the device's counters.
	Count()
	// Close frees the prepared list. It is called once.
	Close()
}

// Place identifies an operand of a launch in a list.
type Place struct{ Launch, Arg int32 }

// Homer is a Device on which lists gain from results in the same memory as in earlier runs.
type Homer interface {
	// NewHome makes a place for one result of a list. It returns nil if the device gains nothing.
	NewHome() Home
}

// Home is a place to which some memory of a result returns. Its methods are called one at a time.
type Home interface {
	// Alloc is Device.Alloc. It prefers memory that an earlier Alloc gave and that is free again.
	Alloc(bytes int64) (Buffer, error)
	// Close ends the preference. Memory that is in use stays so.
	Close()
}
