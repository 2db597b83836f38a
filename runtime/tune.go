package runtime

import "time"

// Tuner is a device that has more than one way to run a launch. All ways are correct: they give
// the same bits on an exact device, and results within the ops' tolerances elsewhere. Package
// autotune measures which is fastest; Launch.Choice selects one. Launches of a chain have no
// choices.
type Tuner interface {
	// Choices lists the ways to run a launch. It does not look at the buffers of the operands.
	Choices(l *Launch) Choices
	// Try runs a launch once by its Choice, as Run would, waits for the end, and returns the time
	// taken. Counters of launches do not include it.
	Try(l *Launch) (time.Duration, error)
	// Changes counts the events that make earlier answers of Choices out of date, such as a kernel
	// that was compiled since.
	Changes() uint64
}

// Choices are the ways to run a launch.
type Choices struct {
	// Facts describes everything else that decides which choices are possible and how fast they
	// are, beyond the kernel and the device's fingerprint: sizes in buckets, the layout of
	// operands, the number of threads. Launches with equal facts and kernels have the same list.
	Facts string
	// List starts with the device's default, whose code is 0. With fewer than two entries there is
	// no choice.
	List []Choice
}

// Choice is one way to run a launch.
type Choice struct {
	Name string // for people and for files: the same in every process
	Code uint64 // value for Launch.Choice
}
