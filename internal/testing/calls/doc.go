// Package calls tests single calls of package millrace: what they accept, compute, print and
// refuse, and what they allocate. Programs of many calls are in internal/testing/apitest.
//
// Input: single calls. Output: failed tests. Read badinput_test.go first.
package calls
