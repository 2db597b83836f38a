// Package exec binds plans to memory and runs them: as the device's launches, or, where
// one fails, op by op.
//
// Engine part: no compatibility promise; use package millrace.
package exec
