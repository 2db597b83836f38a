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
	// Run does the same as Device.Run of the list. It returns false if nothing was run because the
	// device would now run the list in another way: the caller must run the list by Device.Run,
	// and may prepare it again.
	Run() (done bool, err error)
	// Close frees the prepared list. It is called once.
	Close()
}

// Sequence is a Prepared that runs as a single call of at most some microseconds and cannot fail.
type Sequence interface {
	Prepared
	// Repeat runs the list n times. The caller makes sure that the device is not closed meanwhile.
	// Like Run, Repeat returns false if nothing was run.
	Repeat(n int) bool
	// Count adds the runs since the last Count to the device's counters. Until then the counters
	// lack them.
	Count()
}

// Place identifies an operand of a launch in a list.
type Place struct{ Launch, Arg int32 }
