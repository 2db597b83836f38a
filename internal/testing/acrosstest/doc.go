// Package acrosstest has tests of optim.Across: training on several ranks of package dist, compared
// bit by bit with an oracle that computes the same on one process, in plain Go where it can.
//
// Input: a model of the table, or random numbers for one, and the rank's World. Output: the values at
// the end of a training, or the first that differs. Read model.go first.
package acrosstest
