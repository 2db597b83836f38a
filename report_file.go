package millrace

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/stream"
)

// reportFile is a file that MILLRACE_DEBUG=report=FILE names. It is written when a device
// is closed. Most programs end without closing anything, and nothing of theirs runs then: so
// it is written where a program has waited for results, too, and while it runs.
type reportFile struct {
	path string
	next atomic.Int64 // nanoseconds since begun, before which a program does not wait for it

	mu     sync.Mutex
	closed []report.Device // the last of those that are not open any more
}

// begun is when the process began, nearly.
var begun = time.Now()

const (
	youngProgram = 150 * time.Millisecond // so long the file is written whenever results were waited for
	idleReport   = 2 * time.Second        // between writings that no result brings about
	reportShare  = 100                    // times as long as a writing took there is none
	longestWrite = 50 * time.Millisecond  // that a program waits for one
	// closedDevices is how many devices a file shows that are closed.
	closedDevices = 8
)

var reportFiles struct {
	sync.Mutex
	byPath map[string]*reportFile
}

// sharedReport begins a file, and writes it at once: who cannot have one hears of it.
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
	time.AfterFunc(idleReport, x.again)
	return nil
}

// again writes the file, and comes back later.
func (x *reportFile) again() {
	start := time.Now()
	x.writeOpen()
	time.AfterFunc(max(idleReport, reportShare*time.Since(start)), x.again)
}

// writeOpen writes the file while a device is open. They hear of what is wrong.
func (x *reportFile) writeOpen() {
	open := reported()
	if len(open) == 0 {
		return
	}
	start := time.Now()
	err := x.write()
	x.next.Store(int64(time.Since(begun) + reportShare*time.Since(start)))
	if err != nil {
		for _, d := range open {
			d.OnError(err)
		}
	}
}

// waited writes the file, if it is time. The caller may hold a stream's lock, which the
// report wants: then it is written when that is given up.
func (x *reportFile) waited(opened time.Time) {
	if time.Since(opened) > youngProgram && int64(time.Since(begun)) < x.next.Load() {
		return
	}
	done := make(chan struct{})
	go func() {
		x.writeOpen()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(longestWrite):
	}
}

// watchReports has the files written where the device was waited for.
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

// reported are the open devices that remember what they run.
func reported() (list []*stream.Device) {
	for _, d := range stream.Devices() {
		if d.Profile != nil {
			list = append(list, d)
		}
	}
	return list
}

// closedReports writes all files with a device that was closed just now.
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
		}
		x.closed = append(x.closed, d.Report(roofsOf(d)))
		x.mu.Unlock()
		err = errors.Join(err, x.write())
	}
	return err
}

// write replaces the file as a whole: who opens it never sees a part.
func (x *reportFile) write() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("report: %w", err)
		}
	}()
	r := newReport()
	r.Devices = append(r.Devices, x.closed...)
	for _, d := range reported() {
		r.Devices = append(r.Devices, d.Report(roofsOf(d)))
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
	// A name of its own, so that a program that ends in the middle leaves one such file at most.
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
