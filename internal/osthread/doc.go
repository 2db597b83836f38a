// Package osthread runs functions, one after another, on a dedicated thread of the operating
// system. Libraries with state per thread need that.
//
// Input: functions. Output: their calls, in order, on one thread. Read osthread.go first.
//
// Engine part: no compatibility promise; use package millrace.
package osthread
