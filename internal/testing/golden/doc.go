// Package golden runs text files of cases against the code they describe. A file is a list of
// cases, separated by blank lines:
//
//	# What this case ensures.
//	lower fold
//	in 0 : float32
//	----
//	out 0 : float32
//
// The first line that is no comment is a command with its arguments. The lines up to ---- are the
// input, and the rest, up to a blank line, is the output. An output that contains blank lines is
// placed between two doubled separators instead. Tests run with -update rewrite the outputs in
// place and change nothing else.
//
// Input: files of cases, and a function for each command. Output: a failed test for each output
// that differs. Read golden.go first.
//
// Engine part: no compatibility promise; use package millrace.
package golden
