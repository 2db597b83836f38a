package runtime

import "time"

// Tuner is a device that has more than one way to run a launch. All of them are
// right: on an exact device with the same bits, elsewhere within the tolerances
// of the ops. Which is fastest is found out by running them (package autotune);
// a launch says by its Choice which one it takes. Launches of a chain have none.
type Tuner interface {
	// Choices lists the ways to run a launch. The buffers of its operands are not
	// looked at.
	Choices(l *Launch) Choices
	// Try runs a launch once, as Run would do, by the choice it names, waits until
	// that is done, and returns how long it took. Counters of launches do not count
	// it.
	Try(l *Launch) (time.Duration, error)
	// Changes counts what makes earlier answers of Choices out of date, such as
	// kernels that were compiled since.
	Changes() uint64
}

// Choices are the ways to run a launch.
type Choices struct {
	// Facts is what their speed rests on besides the kernel and the device's
	// fingerprint, and whether they are possible at all: sizes, in buckets, how
	// operands lie, how many threads there are. Launches of equal facts and kernels
	// have the same list.
	Facts string
	// List has the device's own way first, whose code is 0. With fewer than two
	// there is nothing to choose.
	List []Choice
}

// Choice is one way to run a launch.
type Choice struct {
	Name string // for people and for files: the same in every process
	Code uint64 // for Launch.Choice
}
