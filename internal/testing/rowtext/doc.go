// Package rowtext has texts of kernels with row operations, for tests of several packages: codegen
// splits them, devices compute them. It imports nothing, so codegen's own tests can import it.
//
// Input: none. Output: texts that codegen parses. Read rowtext.go first.
//
// Engine part: no compatibility promise; use package millrace.
package rowtext
