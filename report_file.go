package millrace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace-go/millrace/internal/report"
	"github.com/millrace-go/millrace/stream"
)

// reportFile is a file that MILLRACE_DEBUG=report=FILE names. It is written when a device
// is closed, and while the program runs less and less often, as who ends without closing
// anything wants to see something, too.
type reportFile struct {
	path string

	mu     sync.Mutex
	closed []report.Device // the last of those that are not open any more
	wait   time.Duration
}

const (
	firstReport = 200 * time.Millisecond // until a file is written again
	longReport  = 5 * time.Second        // the longest time between two writings, but for
	reportShare = 100                    // times as long as the last one took
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
	x := &reportFile{path: path, wait: firstReport}
	if err := x.write(); err != nil {
		return err
	}
	if f.byPath == nil {
		f.byPath = map[string]*reportFile{}
	}
	f.byPath[path] = x
	time.AfterFunc(x.wait, x.again)
	return nil
}

// again writes the file while a device is open, and comes back later.
func (x *reportFile) again() {
	start := time.Now()
	open := reported()
	if len(open) > 0 {
		if err := x.write(); err != nil {
			for _, d := range open {
				d.OnError(err)
			}
		}
	}
	x.wait = min(2*x.wait, longReport)
	time.AfterFunc(max(x.wait, reportShare*time.Since(start)), x.again)
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
	f, err := os.CreateTemp(filepath.Dir(x.path), "."+filepath.Base(x.path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(report.Write(f, r), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), x.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
