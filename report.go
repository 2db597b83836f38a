package millrace

import (
	"fmt"
	"io"
	goruntime "runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/internal/roof"
	"github.com/millrace-go/millrace/stream"
)

// Report writes an HTML page that shows what devices ran since they were opened. It has a time
// line of recording, planning, compiling, tuning and kernels; a table of kernels with their
// times, bytes and operations; a roofline plot; and memory. A kernel of the table opens to show
// its ops, its code and why it was not fused with others. The page needs no other file. Without
// devices it shows all that this program has open.
//
// Times are known for devices that were opened with Options.Report ("cpu:report"), or with
// MILLRACE_DEBUG=report=FILE.html, which also writes the page of all devices to a file; see
// docs/debugging.md. The devices may be closed.
func Report(w io.Writer, devices ...*Device) error {
	if w == nil {
		return errNilWriter
	}
	r := newReport()
	for _, d := range devices {
		if !d.made() {
			return errNilDevice
		}
		r.Devices = append(r.Devices, d.d.Report())
	}
	if len(devices) == 0 {
		for _, d := range stream.Devices() {
			r.Devices = append(r.Devices, d.Report())
		}
	}
	return report.Write(w, r)
}

func newReport() *report.Report {
	r := &report.Report{Made: time.Now(), Go: goruntime.Version() + " " + goruntime.GOOS + "/" + goruntime.GOARCH,
		Machine: fmt.Sprintf("%s, %d threads", machine.Processor(), goruntime.GOMAXPROCS(0))}
	if b, ok := debug.ReadBuildInfo(); ok {
		r.Program = b.Path
	}
	return r
}

// measuredPeaks returns the peaks of all threads together. The process measures them once, in
// about 60 ms.
var measuredPeaks = sync.OnceValue(func() (r stream.Peaks) {
	yard, err := roof.New()
	if err != nil {
		return r // there is no machine code for this processor, so the page has no peaks
	}
	const rounds, bytes = 3, 32 << 20
	threads := goruntime.GOMAXPROCS(0)
	src, dst := make([]byte, bytes), make([]byte, bytes)
	copy(dst, src) // touch the pages, so that they exist
	for range rounds {
		ops, took := yard.MultiplyAdd(threads, 4, 4*time.Millisecond)
		r.Flops = max(r.Flops, ops/took.Seconds())
		r.Bytes = max(r.Bytes, 2*bytes/yard.Copy(threads, dst, src, true).Seconds())
	}
	return r
})
