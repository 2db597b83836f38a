// Package debug shows what a running program's devices do, as net/http/pprof does for goroutines.
// A program imports it for its side effects:
//
//	import _ "github.com/millrace-go/millrace/debug"
//
// http.DefaultServeMux then serves /debug/millrace, the page of [millrace.Report] for all open
// devices. Package expvar has the devices' counters as "millrace", on /debug/vars. Samples of
// pprof's CPU profiles carry the labels "kernel" and "kernel_key" where a kernel runs on the CPU:
//
//	go tool pprof -tagfocus=kernel=... or, in its shell, tags
//
// The page has times of devices that were opened with Options.Report, or with
// MILLRACE_DEVICE=cpu:report. A goroutine that waits for a small result may run the kernel itself.
// It then loses the labels that the program gave it with pprof.Do. Kernels of a bound recording
// that is a single call have no labels.
//
// Of the source, read debug.go first.
package debug
