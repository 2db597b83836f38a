// Package local is a driver of package dist whose ranks are goroutines of one process. Tests use
// its links, which have a rate and a delay, lose messages, and have ranks that stop or die.
//
// [Run] starts the ranks. Each has a World of its own, and all share the process's memory and
// devices. Each needs a stream of its own: the jobs of a stream run in order, so ranks that share
// one would wait for each other until the deadline.
//
// Of the source, read net.go first.
package local
