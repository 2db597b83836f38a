package stream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// slow is a device on which launches of slowPoints points wait until the test lets them through.
type slow struct {
	runtime.Device
	begun, open chan struct{}
}

const slowPoints = 7

func (d *slow) Run(ls []runtime.Launch) error {
	if l := &ls[0]; slices.Contains(l.Dims[:l.Rank], slowPoints) {
		select {
		case d.begun <- struct{}{}:
		default:
		}
		<-d.open
	}
	return d.Device.Run(ls)
}

// openSlow opens a slow device. Only time can show that a call blocks; tests give up long before
// the timeout of go test.
func openSlow(t *testing.T, o device.Options) (*env, *slow) {
	dev := &slow{refdev.New(runtime.Config{}), make(chan struct{}, 1), make(chan struct{}, 100)}
	d, err := OpenOn(dev, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(dev.open)
		d.Close()
	})
	return &env{t, d}, dev
}

const patience = 20 * time.Second

// soon fails the test if f does not return while the slow launch is running.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s waits for another stream", what)
	}
}

func sevens() []float32 { return []float32{1, 2, 3, 4, 5, 6, 7} }

// busy starts a slow computation on a stream, and returns its result when the launch is running.
func (e *env) busy(dev *slow, s *Stream) *Value {
	y := mul(e, e.host(Place{S: s}, ir.Shape{slowPoints}, sevens()...), 2)
	go s.flushAll() // Sync would take the errors
	<-dev.begun
	return y
}

// A user of one stream does not wait for computations of another stream.
func TestStreamsDoNotWaitForEachOther(t *testing.T) {
	e, dev := openSlow(t, device.Options{})
	a, b := e.d.NewStream(), e.d.NewStream()
	y := e.busy(dev, a)
	x := e.host(Place{S: b}, ir.Shape{2}, 1, 2)
	soon(t, "a read", func() { e.want(mul(e, x, 3), 3, 6) })
	soon(t, "Sync", func() {
		_ = mul(e, x, 4)
		if err := b.Sync(context.Background()); err != nil {
			t.Error(err)
		}
	})
	soon(t, "a cut", func() {
		z := x
		for range 4 * exec.MaxQueued * defaultCap {
			z = add(e, z, 1)
		}
		e.want(z, 1+4*exec.MaxQueued*defaultCap, 2+4*exec.MaxQueued*defaultCap)
	})
	soon(t, "a collection", func() { e.d.mem.Reclaim(true) })
	soon(t, "recording", func() { add(e, y, 1) })
	soon(t, "Explain", func() { Explain(x) })
	soon(t, "Close", func() { b.Close() })
	dev.open <- struct{}{}
	e.want(y, 2, 4, 6, 8, 10, 12, 14)
}

// A stream waits for the values of another stream that it reads.
func TestStreamWaitsForItsOperands(t *testing.T) {
	e, dev := openSlow(t, device.Options{})
	a, b := e.d.NewStream(), e.d.NewStream()
	y := e.busy(dev, a)
	w := new(Value)
	To(w, Place{S: b}, y)
	w = add(e, w, 1)
	if w.Home() != b {
		t.Fatal("the op is not on the other stream")
	}
	done := make(chan struct{})
	go func() { e.want(w, 3, 5, 7, 9, 11, 13, 15); close(done) }()
	select {
	case <-done:
		t.Error("read before it was computed")
	case <-time.After(50 * time.Millisecond):
	}
	dev.open <- struct{}{}
	dev.open <- struct{}{}
	<-done
}

// A caller that gives up returns at once. The work goes on, and the stream can be used meanwhile.
func TestGivingUp(t *testing.T) {
	e, dev := openSlow(t, device.Options{})
	s := e.d.NewStream()
	y := e.busy(dev, s)
	for name, wait := range map[string]func(context.Context) error{
		"Sync of a stream": s.Sync,
		"Sync of a device": e.d.Sync,
		"a read":           func(ctx context.Context) error { return FlushContext(ctx, y) },
		"another read":     func(ctx context.Context) error { return FlushContext(ctx, add(e, y, 1)) },
	} {
		soon(t, name, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Sync(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var z *Value
	soon(t, "recording", func() { z = mul(e, y, 10) })
	for range 3 {
		dev.open <- struct{}{}
	}
	e.want(y, 2, 4, 6, 8, 10, 12, 14)
	e.want(z, 20, 40, 60, 80, 100, 120, 140)
}

// An error that happens after the waiting caller gave up is reported to the next caller.
func TestGivingUpLosesNoError(t *testing.T) {
	e, dev := openSlow(t, device.Options{})
	s := e.d.NewStream()
	e.busy(dev, s)
	bad := new(Value)
	x := e.host(Place{S: s}, ir.Shape{slowPoints}, sevens()...)
	i := new(Value)
	FromHost(i, Place{S: s}, ir.Int32, ir.Shape{1}, []byte{99, 0, 0, 0})
	Record(bad, Place{}, ir.Gather, ir.Invalid, nil, &ir.Attr{Axes: []int{0}}, []Arg{t1(x), t1(i)})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := s.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		select {
		case dev.open <- struct{}{}:
		default:
		}
		if err := s.Err(); errors.Is(err, ir.ErrIndex) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the error is lost")
		}
	}
}

// A kernel does not overwrite memory that another stream's job still reads.
func TestInPlaceWaitsForNobody(t *testing.T) {
	e, dev := openSlow(t, device.Options{})
	a, b := e.d.NewStream(), e.d.NewStream()
	x := add(e, e.host(Place{S: a}, ir.Shape{slowPoints}, sevens()...), 0)
	dev.open <- struct{}{}
	if err := Flush(x); err != nil {
		t.Fatal(err)
	}
	alias := new(Value)
	To(alias, Place{S: b}, x)
	y := mul(e, alias, 2)
	Release(alias)
	go b.flushAll()
	for end := time.Now().Add(patience); e.d.lanes.Submitted.Load()-e.d.lanes.Finished.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing runs")
		}
	}
	z := add(e, x, 100) // x has one reader left, a's queue
	Release(x)
	a.mu.Lock()
	before := e.d.Stats().InPlace
	a.flush(segment.End{Reason: segment.ReasonSync, ID: -1}, false)
	after := e.d.Stats().InPlace
	a.mu.Unlock()
	if after != before {
		t.Error("overwritten in place while it is read")
	}
	for range 3 {
		dev.open <- struct{}{}
	}
	e.want(y, 2, 4, 6, 8, 10, 12, 14)
	e.want(z, 101, 102, 103, 104, 105, 106, 107)
}

// Memory returns to the pool when the last job that uses it has run, not before. The device
// overwrites freed memory to show it.
func TestMemoryOfQueuedJobs(t *testing.T) {
	e := open(t, func(o *device.Options) { o.QueueCap = 8 })
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			s := e.d.NewStream()
			x := e.host(Place{S: s}, ir.Shape{3}, 0, 1, float32(g))
			for range 300 {
				y := add(e, x, 1)
				Release(x)
				x = y
			}
			e.want(x, 300, 301, 300+float32(g))
			Release(x)
		})
	}
	all.Wait()
	if err := e.d.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if live := e.d.Stats().LiveBytes; live != 0 || e.d.Stats().Runtime.AllocBytes != 0 {
		t.Errorf("%d bytes live, %d of the device's", live, e.d.Stats().Runtime.AllocBytes)
	}
}
