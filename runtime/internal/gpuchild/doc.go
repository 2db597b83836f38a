// Package gpuchild has a gpurun.Device in a process of its own. What a driver can do to
// a process, such as end it, it then does to that one: here the device is lost, and the
// program goes on. The process is a second one of the program's binary, whose driver
// package turns it into a server ([Serve]) before main begins. Calls go through two
// pipes, what is written to buffers and read from them through shared memory.
//
// Engine part: no compatibility promise; use package millrace.
package gpuchild
