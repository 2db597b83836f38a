// Package autotune finds out which of several ways to run something is fastest, and saves all
// timings. Measure and Table know no device and no kernel: they call functions that run and that
// check a candidate. A device's Tuner uses them to time launches of the program's plans, on memory
// of its own, and chooses the way in which each launch runs.
//
// The default is the way that runs without tuning. A candidate is first checked to give the same
// results as the default, then timed in turns with it. It is preferred only if the 95 % interval
// of the ratios of these pairs says that it is faster, and the interval of as many fresh pairs
// says so again. The first test is wrong once in forty times for each candidate and look, and
// these chances add up. The second test wrongly accepts one in forty of those that pass the first.
// So tuning makes hardly anything slower. The order of preference depends only on the table.
//
// Input: the ways to run something, the default first. Output: a [Table] of their times, and the
// way that is preferred. Read measure.go first.
//
// Engine part: no compatibility promise; use package millrace.
package autotune
