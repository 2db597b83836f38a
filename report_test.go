package millrace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReportFileOneWriter checks that any number of waiting requests cause only one more write
// after the present one.
func TestReportFileOneWriter(t *testing.T) {
	d, err := Open("cpu:report,cache=off")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x := &reportFile{path: filepath.Join(t.TempDir(), "page.html")}
	x.mu.Lock() // as during a slow write
	first := x.ask()
	for taken := false; !taken; time.Sleep(time.Millisecond) {
		x.queue.Lock()
		taken = x.pending == nil
		x.queue.Unlock()
	}
	next := x.ask()
	for range 100 {
		if x.ask() != next {
			t.Fatal("somebody who asks while a writing goes on waits for another one than the next")
		}
	}
	if first == next {
		t.Fatal("who asks during a writing waits for that one, which may not show what ran since")
	}
	x.mu.Unlock()
	<-first
	<-next
	if _, err := os.Stat(x.path); err != nil {
		t.Error(err)
	}
	for busy := true; busy; time.Sleep(time.Millisecond) {
		x.queue.Lock()
		busy = x.busy
		x.queue.Unlock()
	}
	// Nothing ran since, so there is nothing new to write.
	if err := os.Remove(x.path); err != nil {
		t.Fatal(err)
	}
	<-x.ask()
	if _, err := os.Stat(x.path); err == nil {
		t.Error("written again, though nothing ran")
	}
	if got := x.next.Load() - int64(time.Since(begun)); got > int64(reportEvery) {
		t.Errorf("after a writing no other one for %v", time.Duration(got))
	}
}
