// Package disttest has the tests that all drivers of package dist pass.
//
// Input: a function that runs a case on ranks of a driver. Output: failures of a test. Read suite.go
// first.
//
// Engine part: no compatibility promise; use package millrace.
package disttest
