// Package fault makes operations fail on demand, which lets tests run every failure path. Nothing
// is armed outside tests, and an unarmed point costs one atomic load.
//
// Input: the name of a point in the code. Output: an error if a test armed that point, else nil.
// Read fault.go first.
//
// Engine part: no compatibility promise; use package millrace.
package fault
