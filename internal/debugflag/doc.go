// Package debugflag reads MILLRACE_DEBUG, the one environment variable for
// debugging and profiling: keys separated by commas, as in
// MILLRACE_DEBUG=lines,trace=out.json.
//
// Input: the text of MILLRACE_DEBUG. Output: its [Flags]. Read debugflag.go first.
//
// Engine part: no compatibility promise; use package millrace.
package debugflag
