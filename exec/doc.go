// Package exec binds plans to memory and runs them as launches of the device. If a launch fails,
// it runs the operations one by one.
//
// Engine part: no compatibility promise; use package millrace.
package exec
