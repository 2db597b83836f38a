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

// Report writes a page of HTML that shows what devices ran since they were opened: a time
// line of recording, planning, compiling, tuning and kernels, a table of kernels with their
// times, bytes and operations, which open to their ops, their code and what they were not
// fused with, a roofline plot, and memory. It needs no other file. Without devices it shows
// all that this program has open.
//
// Times are known of devices that were opened with Options.Report ("cpu:report"), or with
// MILLRACE_DEBUG=report=FILE.html, which also writes the page of all devices to a file; see
// docs/debugging.md. Closed devices can be reported on.
func Report(w io.Writer, devices ...*Device) error {
	if w == nil {
		return errNilWriter
	}
	r := newReport()
	for _, d := range devices {
		if !d.made() {
			return errNilDevice
		}
		r.Devices = append(r.Devices, d.d.Report(roofsOf(d.d)))
	}
	if len(devices) == 0 {
		for _, d := range stream.Devices() {
			r.Devices = append(r.Devices, d.Report(roofsOf(d)))
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

// roofsOf is what a device can do at most. Only that of the CPU is measured, once in a
// process, when the first device is opened that remembers what it runs.
func roofsOf(d *stream.Device) stream.Roofs {
	if d.Name() != "cpu" || !d.Options().Report {
		return stream.Roofs{}
	}
	return measuredRoofs()
}

// measuredRoofs are those of all threads. It takes some 60 ms.
var measuredRoofs = sync.OnceValue(func() (r stream.Roofs) {
	yard, err := roof.New()
	if err != nil {
		return r // no machine code for this processor: the page says nothing of roofs
	}
	const rounds, bytes = 3, 32 << 20
	threads := goruntime.GOMAXPROCS(0)
	src, dst := make([]byte, bytes), make([]byte, bytes)
	copy(dst, src) // has the pages there
	for range rounds {
		ops, took := yard.MultiplyAdd(threads, 4, 4*time.Millisecond)
		r.Flops = max(r.Flops, ops/took.Seconds())
		r.Bytes = max(r.Bytes, 2*bytes/yard.Copy(threads, dst, src, true).Seconds())
	}
	return r
})
