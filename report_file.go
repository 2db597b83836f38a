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

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/stream"
)

// reportFile is a file that MILLRACE_DEBUG=report=FILE names. One goroutine at a time writes
// it. It is written when a device is closed. Most programs end without closing anything, and
// no code of this package runs then: so the file is also written where the program has waited
// for results, and by a timer while the program runs.
type reportFile struct {
	path string
	next atomic.Int64 // nanoseconds since begun, before which the program waits for no writing

	queue   sync.Mutex
	busy    bool          // a goroutine writes
	pending chan struct{} // closed after the next writing; nil when nobody asked for one

	mu     sync.Mutex
	closed []report.Device // the last ones that were closed
	left   int             // closed devices that are not in that list any more
	seen   []device.Stats  // of the open devices, when the file was last written
}

// begun is when the process began, nearly.
var begun = time.Now()

const (
	firstReports = 150 * time.Millisecond // so long after the opening of a device, the file is written at each wait for results
	reportEvery  = 4 * time.Second        // between two writings while something runs: a page is at most 5 s old
	reportShare  = 100                    // after a writing there is none for so many times as long as it took, up to reportEvery
	longestWrite = 50 * time.Millisecond  // the program waits so long for a writing
	// closedDevices is how many closed devices a file shows.
	closedDevices = 8
)

var reportFiles struct {
	sync.Mutex
	byPath map[string]*reportFile
}

// sharedReport begins a file and writes it at once, so that a file that cannot be written is
// an error at the first opening of a device.
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

// again writes the file, and comes back.
func (x *reportFile) again() {
	<-x.ask()
	time.AfterFunc(reportEvery, x.again)
}

// ask has the file written soon and returns a channel that is closed when it is. All who ask
// while a writing goes on wait for the same next one: a slow writing causes no queue of others.
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

// serve writes the file as long as somebody asks for it.
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

// writeOpen writes the file if an open device did something since the last time. The devices'
// trace hooks are told of a file that cannot be written.
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
	x.next.Store(int64(time.Since(begun) + reportEvery)) // nobody waits for the next one meanwhile
	err := x.write()
	x.next.Store(int64(time.Since(begun) + min(reportShare*time.Since(start), reportEvery)))
	if err != nil {
		for _, d := range open {
			d.OnError(err)
		}
	}
}

// waited writes the file, if it is time. The caller may hold a stream's lock, which the
// report needs: then the file is written after the lock is released.
func (x *reportFile) waited(opened time.Time) {
	if time.Since(opened) > firstReports && int64(time.Since(begun)) < x.next.Load() {
		return
	}
	select {
	case <-x.ask():
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
			x.left++
		}
		x.closed = append(x.closed, d.Report())
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
