// Package profile remembers what a device ran: which launches, how long they took, what
// else took time, and how much memory there was. Package stream makes a report of it.
//
// Launches of a list are timed one by one in a few of its runs only: see Due. Runs before
// one of these count for what it took.
package profile
