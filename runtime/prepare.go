package runtime

// Preparer is a device that makes a list of launches ready once and runs it many times,
// for programs that do the same over and over with other buffers.
type Preparer interface {
	// Prepare makes a list ready, with the buffers that it names; nil where that cannot be
	// done, or not yet, as where a run would wait for a compiler. The list is the caller's
	// again, but for what it points to, which never changes. What lies in own is nobody's
	// business once a run has ended: it may be left out of memory altogether.
	Prepare(list []Launch, own []Buffer) Prepared
}

// Prepared is a list of launches that is ready to run. Its methods are called one at a time.
type Prepared interface {
	// Set puts another buffer at places that have one. It reports false, and has done
	// nothing, where the buffer will not do there: then the launches are to be run by Run.
	// When the list runs, operands of which one is written and that were different buffers
	// must be so still, and those that were one must be one: what runs beside what depends
	// on that.
	Set([]Place, Buffer) bool
	// Run is Device.Run of the list. It returns false where nothing has run, since the
	// device would not do it the same way any more: the list is to be run by Device.Run, and
	// may be prepared again.
	Run() (done bool, err error)
	// Close gives up what was made. It is called once.
	Close()
}

// Sequence is a Prepared that is a single call of some microseconds at most, which cannot
// fail.
type Sequence interface {
	Prepared
	// Repeat is so many Runs, for a caller who sees to it that the device is not closed
	// meanwhile. It returns false where nothing has run, as Run does.
	Repeat(n int) bool
	// Count adds what ran since it was called last to the device's counters, which may be
	// late by that.
	Count()
}

// Place is an operand of a launch in a list.
type Place struct{ Launch, Arg int32 }
