package stream

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/refdev"
	"github.com/millrace-go/millrace/runtime"
)

// waitful is a device whose tries of anything but the default wait for a compiler
// that takes for ever, until it is given up.
type waitful struct {
	*tunable
	begun, quit chan struct{}
	once        sync.Once
	gone        bool // Close was called; late are calls after that
	late        int
}

func (d *waitful) Try(ls []runtime.Launch) (time.Duration, error) {
	if ls[0].Choice == 0 {
		return d.tunable.Try(ls)
	}
	d.once.Do(func() { close(d.begun) })
	<-d.quit
	return 0, errWay
}

func (d *waitful) Quit() { close(d.quit) }

func (d *waitful) Free(b runtime.Buffer) {
	d.mu.Lock()
	if d.gone {
		d.late++
	}
	d.mu.Unlock()
	d.tunable.Free(b)
}

func (d *waitful) Close() error {
	d.mu.Lock()
	d.gone = true
	d.mu.Unlock()
	return d.tunable.Close()
}

// Close does not wait for compilers that a candidate waits for: it has them given
// up. The candidate is not taken for one that cannot run, on disk neither, and its
// memory is given back to a device that is still open.
func TestCloseWhileCompilersAreAwaited(t *testing.T) {
	dir := t.TempDir()
	dev := &waitful{tunable: &tunable{takes: []time.Duration{10 * tms, 5 * tms}}, begun: make(chan struct{}), quit: make(chan struct{})}
	dev.Device = refdev.New(runtime.Config{})
	d, err := OpenOn(dev, Options{Device: "ref", Explore: ExploreWait, Cache: dir})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t, d}
	for range tuneAfter {
		halves(e, 5)
	}
	<-dev.begun
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close waits for a compiler")
	}
	if s := d.Stats(); s.Tunings != 0 || s.Fallbacks != 0 {
		t.Errorf("%d tunings, %d fallbacks", s.Tunings, s.Fallbacks)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "v1", "tuning-*")); err != nil || len(files) > 0 {
		t.Errorf("%v was written, %v", files, err)
	}
	if dev.late > 0 {
		t.Errorf("%d buffers were given back to a closed device", dev.late)
	}
}
