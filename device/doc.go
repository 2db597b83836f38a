// Package device holds what all parts of an open device share: the driver and its capabilities, the
// options and the user's hooks, the programs of kernels, and the counters.
//
// Engine part: no compatibility promise; use package millrace.
package device
