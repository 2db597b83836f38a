package runtime

import "time"

// Tuner is a device that has more than one way to run a launch. All of them are
// right: on an exact device with the same bits, elsewhere within the tolerances
// of the ops. Which is fastest is found out by running them (package autotune);
// a launch says by its Choice which one it takes.
//
// What is run together is a unit: one launch without a chain, or all launches of
// one chain. The choice of a chain is that of its first launch.
type Tuner interface {
	// Choices lists the ways to run a unit. The buffers of its operands are not
	// looked at.
	Choices(unit []Launch) Choices
	// Combine makes one choice of several, given by their codes, the one that
	// matters most first: it does all that they do, where two differ over one thing
	// what the first of them does. It is false where no two go together.
	Combine(codes []uint64) (Choice, bool)
	// Try runs a unit once, as Run would do, by the choice it names, waits until
	// that is done, and returns how long it took. It may wait for a compiler first.
	// Counters of launches do not count it. Where the choice cannot be followed it
	// is an error, ErrLacking where another process may be able to, while Run falls
	// back on the device's own way.
	Try(unit []Launch) (time.Duration, error)
	// Possible reports whether the choice that a unit names can be followed by Run,
	// now or when what it needs is ready. Whoever chose it takes another one where
	// it cannot: Run would fall back each time. What the answer rests on changes
	// with Changes, and with the facts.
	Possible(unit []Launch) bool
	// Changes counts what makes earlier answers of Choices out of date, such as
	// kernels that were compiled since.
	Changes() uint64
}

// Choices are the ways to run a unit.
type Choices struct {
	// Facts is what their speed rests on besides the kernels and the device's
	// fingerprint, and whether they are possible at all: sizes, in buckets, how
	// operands lie, how many threads there are. Units of equal facts and kernels
	// have the same list.
	Facts string
	// List has the device's own way first, whose code is 0. With fewer than two
	// there is nothing to choose.
	List []Choice
}

// Choice is one way to run a unit.
type Choice struct {
	Name string // for people and for files: the same in every process
	Code uint64 // for Launch.Choice
}
