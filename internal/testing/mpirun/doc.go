// Package mpirun starts programs under the launchers of MPI that the system has, and finds their
// processes, for tests.
//
// Input: a program and a number of ranks. Output: what it printed, and the processes of its job,
// also those that are left when the launcher has ended. Read mpirun.go first.
package mpirun
