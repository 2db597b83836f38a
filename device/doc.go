// Package device has what all parts of an open device share: the driver and what it can
// do, the options and the user's hooks, the programs of kernels, and the counters.
//
// Engine part: no compatibility promise; use package millrace.
package device
