// Package autotune finds out which of several ways to run something is fastest,
// and remembers all that it timed. Measure and Table know no device and no kernel:
// they take functions that run and that check a candidate. A device's Tuner has them
// time launches of the program's plans, on memory of its own, and says by which way
// each is to run.
//
// A candidate is first checked to give the same results as the one that is run
// without tuning, the default, and then timed in turns with it. It is preferred
// only where the 95 % interval of the ratios of those pairs says that it is
// faster, and that of as many fresh pairs says so again: the first has one chance
// in forty to be wrong, per candidate and look, which adds up; the second has one
// in forty for what the first let through. So tuning makes hardly anything slower.
// The order of preference follows from the table alone.
//
// Engine part: no compatibility promise; use package millrace.
package autotune
