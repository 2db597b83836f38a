// Package gpudriver connects GPU drivers to the engine: it opens a device, in this process or in
// another one, and lists the adapters.
//
// Input: a [Driver]: how to open an adapter. Output: a driver registered with package runtime. Read
// driver.go first.
//
// Engine part: no compatibility promise; use package millrace.
package gpudriver
