// Package gpuchild provides a gpurun.Device in another process. If a driver crashes, it ends only
// that process: here the device is lost, and the program continues. The process runs the program's
// own binary, whose driver package turns it into a server ([Serve]) before main begins. Calls use
// two pipes; data of buffers goes through shared memory.
//
// Input: calls of a gpurun.Device. Output: the same calls in another process, and their results.
// Read device.go first.
//
// Engine part: no compatibility promise; use package millrace.
package gpuchild
