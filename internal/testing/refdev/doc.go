// Package refdev is a device that runs programs by the Kernel IR interpreter: slow but obviously
// correct. Tests of the engine run on it; a failure is then the engine's and not a driver's.
//
// Input: kernels and launches, as every driver gets them. Output: their results by the interpreter.
// Read refdev.go first.
package refdev
