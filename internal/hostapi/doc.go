// Package hostapi has operations on tensors that the public API lacks, for the modules and packages
// of this repository. Package millrace sets all of them.
//
// Input: tensors, devices and scopes of package millrace, as any. Output: what each function says.
// Read handle.go first.
//
// Engine part: no compatibility promise; use package millrace.
package hostapi
