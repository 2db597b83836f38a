// Package profile records what a device ran: the launches and their times, other work that took
// time, and the use of memory. Package stream makes a report of it.
//
// Launches of a list are timed one by one only in a few of its runs: see Due. The runs before a
// timed run count with its times.
//
// Input: what a device ran, and when. Output: a [State] with its sums. Read profile.go first.
package profile
