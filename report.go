package millrace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/internal/roofline"
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
	yard, err := roofline.New()
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

// reportFile is a file that MILLRACE_DEBUG=report=FILE names. One goroutine at a time writes it.
// It is written when a device is closed. Most programs end without closing a device, and no code
// of this package runs then. The file is therefore also written when the program has waited for
// results, and by a timer while the program runs.
type reportFile struct {
	path string
	next atomic.Int64 // nanoseconds since begun; until then the program does not wait for a write

	queue   sync.Mutex
	busy    bool          // a goroutine is writing
	pending chan struct{} // closed after the next write; nil if no write was requested

	mu     sync.Mutex
	closed []report.Device // the most recently closed ones
	left   int             // closed devices that are no longer in that list
	seen   []device.Stats  // of the open devices, when the file was last written
}

// begun is about when the process began.
var begun = time.Now()

const (
	firstReports = 150 * time.Millisecond // for this long after a device is opened, the file is written at each wait for results
	reportEvery  = 4 * time.Second        // between two writes while something runs: a page is at most 5 s old
	reportShare  = 100                    // after a write, the program waits for none for this many times the write's duration, at most reportEvery
	longestWrite = 50 * time.Millisecond  // longest time that the program waits for a write
	// closedDevices is the most closed devices in a file.
	closedDevices = 8
)

var reportFiles struct {
	sync.Mutex
	byPath map[string]*reportFile
}

// sharedReport starts a file and writes it at once. A file that cannot be written is then an
// error when the first device is opened.
func sharedReport(path string) error {
	f := &reportFiles
	f.Lock()
	defer f.Unlock()
	if f.byPath[path] != nil {
		return nil
	}
	x := &reportFile{path: path}
	if err := x.write(); err != nil {
		return err
	}
	if f.byPath == nil {
		f.byPath = map[string]*reportFile{}
	}
	f.byPath[path] = x
	time.AfterFunc(reportEvery, x.again)
	return nil
}

// again writes the file and sets the timer for the next write.
func (x *reportFile) again() {
	<-x.ask()
	time.AfterFunc(reportEvery, x.again)
}

// ask makes a goroutine write the file soon, and returns a channel that is closed when it is
// written. All requests during a write wait for the same next one, so a slow write causes no
// queue of others.
func (x *reportFile) ask() <-chan struct{} {
	x.queue.Lock()
	defer x.queue.Unlock()
	if x.pending == nil {
		x.pending = make(chan struct{})
	}
	if !x.busy {
		x.busy = true
		go x.serve()
	}
	return x.pending
}

// serve writes the file as long as there are requests.
func (x *reportFile) serve() {
	for {
		x.queue.Lock()
		done := x.pending
		x.pending = nil
		x.busy = done != nil
		x.queue.Unlock()
		if done == nil {
			return
		}
		x.writeOpen()
		close(done)
	}
}

// writeOpen writes the file if an open device did something since the last time. If it cannot be
// written, it reports the error to the devices' trace hooks.
func (x *reportFile) writeOpen() {
	open := reported()
	now := make([]device.Stats, len(open))
	for i, d := range open {
		now[i] = d.Stats()
	}
	x.mu.Lock()
	same := slices.Equal(now, x.seen)
	x.seen = now
	x.mu.Unlock()
	if same {
		return
	}
	start := time.Now()
	x.next.Store(int64(time.Since(begun) + reportEvery)) // the program does not wait for another write meanwhile
	err := x.write()
	x.next.Store(int64(time.Since(begun) + min(reportShare*time.Since(start), reportEvery)))
	if err != nil {
		for _, d := range open {
			d.OnError(err)
		}
	}
}

// waited writes the file if it is time. The caller may hold a stream's lock, which the report
// needs; then the file is written after the lock is released.
func (x *reportFile) waited(opened time.Time) {
	if time.Since(opened) > firstReports && int64(time.Since(begun)) < x.next.Load() {
		return
	}
	select {
	case <-x.ask():
	case <-time.After(longestWrite):
	}
}

// watchReports makes the files be rewritten after a wait for the device's results.
func watchReports(d *stream.Device) {
	f := &reportFiles
	f.Lock()
	defer f.Unlock()
	if d.Profile == nil || len(f.byPath) == 0 {
		return
	}
	files, opened := slices.Collect(maps.Values(f.byPath)), time.Now()
	d.AfterWait = func() {
		for _, x := range files {
			x.waited(opened)
		}
	}
}

// reported returns the open devices that record what they run.
func reported() (list []*stream.Device) {
	for _, d := range stream.Devices() {
		if d.Profile != nil {
			list = append(list, d)
		}
	}
	return list
}

// closedReports writes all files after a device was closed.
func closedReports(d *stream.Device) (err error) {
	if d.Profile == nil {
		return nil
	}
	f := &reportFiles
	f.Lock()
	defer f.Unlock()
	for _, x := range f.byPath {
		x.mu.Lock()
		if len(x.closed) == closedDevices {
			x.closed = append(x.closed[:0], x.closed[1:]...)
			x.left++
		}
		x.closed = append(x.closed, d.Report())
		x.mu.Unlock()
		err = errors.Join(err, x.write())
	}
	return err
}

// write replaces the file as a whole, so a reader never sees a part of it.
func (x *reportFile) write() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("report: %w", err)
		}
	}()
	r := newReport()
	r.Every, r.DevicesLeft = reportEvery.Seconds(), x.left
	r.Devices = append(r.Devices, x.closed...)
	for _, d := range reported() {
		r.Devices = append(r.Devices, d.Report())
	}
	if st, err := os.Stat(x.path); err == nil && !st.Mode().IsRegular() && !st.IsDir() { // a pipe, a terminal
		f, err := os.OpenFile(x.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(report.Write(f, r), f.Close())
	} else if err == nil && st.IsDir() {
		return fmt.Errorf("%s is a directory", x.path)
	}
	// The temporary file has a fixed name, so a program that ends during a write leaves at most
	// one such file.
	f, err := os.OpenFile(filepath.Join(filepath.Dir(x.path), "."+filepath.Base(x.path)+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = errors.Join(report.Write(f, r), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), x.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
