// Package device holds what all parts of an open device share: the driver and its capabilities, the
// options and the user's hooks, the programs of kernels, and the counters.
//
// Input: a driver, its capabilities and the user's [Options]. Output: a [Base], through which the
// other parts use the driver and report to the user. Read base.go first.
//
// Engine part: no compatibility promise; use package millrace.
package device
