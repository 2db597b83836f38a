// Package launcher finds out which launcher started the process, and as how many ranks.
//
// Input: environment variables. Output: the launcher's name, the number of ranks, and the MPI
// libraries that can talk to it. Read launcher.go first.
package launcher
