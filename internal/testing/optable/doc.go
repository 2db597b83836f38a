// Package optable is the table of the public operations on tensors: a row for each, with what its
// tests and its documentation need.
//
// Input: nothing; the rows are Go code, by subject: arithmetic.go, functions.go, and so on.
// Output: Groups, the table in the order of docs/operations, and functions that pick a column, such
// as Forms, Grads and PeerNamed. Tests of autodiff, runtime/internal/gputest and the packages
// beside this one are made from the columns; internal/testing/opdocs writes docs/operations from them.
//
// Read op.go first: it says what each column means and what is made from it.
//
// The package imports linalg and autodiff, so tests of packages below import it as external tests.
//
// Engine part: no compatibility promise; use package millrace.
package optable
