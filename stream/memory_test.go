package stream

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// strict is a device that fails the test if a launch uses a buffer that was already freed. A pool
// may have given that buffer to another user.
type strict struct {
	*refdev.Device
	t     *testing.T
	mu    sync.Mutex
	freed map[runtime.Buffer]bool
}

func openStrict(t *testing.T, o device.Options) *env {
	d, err := OpenOn(&strict{Device: refdev.New(runtime.Config{}), t: t, freed: map[runtime.Buffer]bool{}}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &env{t, d}
}

func (s *strict) Free(b runtime.Buffer) {
	s.mu.Lock()
	if s.freed[b] {
		s.t.Error("a buffer was freed twice")
	}
	s.freed[b] = true
	s.mu.Unlock()
	s.Device.Free(b)
}

func (s *strict) Run(ls []runtime.Launch) error {
	s.mu.Lock()
	for i := range ls {
		for _, a := range ls[i].Args {
			if a.Buf != nil && s.freed[a.Buf] {
				s.t.Errorf("launch %d runs on a buffer that was freed before", i)
			}
		}
	}
	s.mu.Unlock()
	return s.Device.Run(ls)
}

// Memory of temporaries belongs to the plan until the plan is submitted. Later steps reuse the
// memory.
func TestTemporariesAreFreedAfterTheirPlan(t *testing.T) {
	e := openStrict(t, device.Options{Fusion: device.FusionOff})
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := x
	for range 4 {
		mask := e.op(ir.Lt, t1(y), f1(2)) // one byte per element, so no op overwrites its operand
		z := new(Value)
		Record(z, Place{}, ir.Cast, ir.Float32, nil, nil, []Arg{t1(mask)})
		Release(mask)
		if y != x {
			Release(y)
		}
		y = z
	}
	e.want(y, 1, 1)
	if n := e.d.Stats().Runtime.Allocs; n > 4 {
		t.Errorf("%d allocations", n)
	}
	Release(x)
	Release(y)
	if live := e.d.Stats().LiveBytes; live != 0 {
		t.Errorf("%d live bytes", live)
	}
}

// waitFor runs the collector until ok returns true.
func waitFor(t *testing.T, d *Device, what string, ok func(device.Stats) bool) {
	t.Helper()
	for range 50 {
		goruntime.GC()
		d.mem.Boundary()
		if ok(d.Stats()) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%s: %d bytes live, %d pinned", what, d.Stats().LiveBytes, d.Stats().PinnedBytes)
}

// The collector finds the memory that a dropped recipe pinned, and it no longer counts as pinned.
func TestDroppedRecipeUnpins(t *testing.T) {
	e := open(t)
	func() {
		x := e.host(e.place(), ir.Shape{2}, 1, 2)
		y := mul(e, x, 2)
		z := add(e, y, 1)
		Release(x)
		e.want(z, 3, 5)
		if n := e.d.Stats().PinnedBytes; n != 8 {
			t.Errorf("%d bytes pinned", n)
		}
		Release(z)
		goruntime.KeepAlive(y)
	}()
	waitFor(t, e.d, "after the recipe was dropped", func(s device.Stats) bool { return s.LiveBytes == 0 && s.PinnedBytes == 0 })
}

// The memory of a recipe that was kept out of a scope no longer belongs to the scope.
func TestKeptRecipeIsCollected(t *testing.T) {
	e := open(t)
	func() {
		sc := e.d.Default().OpenScope()
		x := e.host(Place{S: e.d.Default(), Scope: sc}, ir.Shape{2}, 1, 2)
		y := mul(e, x, 2)
		z := add(e, y, 1)
		early := mul(e, x, 3)
		late := add(e, early, 1)
		sc.Keep(y) // pending
		e.want(z, 3, 5)
		e.want(late, 4, 7)
		sc.Keep(early) // virtual
		sc.Close()
		goruntime.KeepAlive(y)
	}()
	waitFor(t, e.d, "after all was dropped", func(s device.Stats) bool { return s.LiveBytes == 0 && s.PinnedBytes == 0 })
}

// A value kept out of a scope is collected while the scope stays open, as a server's scope does,
// even if the scope had to move its list of tensors.
func TestKeptIsCollectedWhileItsScopeLasts(t *testing.T) {
	e := open(t)
	sc := e.d.Default().OpenScope()
	defer sc.Close()
	n := 3 * len(sc.room)
	var rest []*Value
	func() {
		var kept []*Value
		for i := range n {
			x := e.host(Place{S: e.d.Default(), Scope: sc}, ir.Shape{2}, 1, 2)
			if i%2 == 0 {
				kept = append(kept, x)
			} else {
				rest = append(rest, x)
			}
		}
		for _, x := range kept {
			sc.Keep(x)
		}
	}()
	waitFor(t, e.d, "after what was kept was dropped", func(s device.Stats) bool { return s.LiveBytes == int64(8*len(rest)) })
	e.want(rest[0], 1, 2)
}

// A scope may end while another goroutine makes a tensor in it. The memory is freed once, by the
// scope or by the collector.
func TestScopeEndsWhileATensorIsMade(t *testing.T) {
	e := openStrict(t, device.Options{})
	d := e.d
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	var stop atomic.Bool
	var others, all sync.WaitGroup
	for range 3 { // they make the other goroutines wait for the lock at various places
		others.Go(func() {
			for !stop.Load() {
				x.Err()
			}
		})
	}
	for _, s := range []*Stream{d.Default(), d.NewStream()} {
		for start := time.Now(); time.Since(start) < time.Second/2; {
			sc := d.Default().OpenScope()
			all.Go(sc.Close)
			all.Go(func() { e.host(Place{S: s, Scope: sc}, ir.Shape{2}, 1, 2) })
			all.Wait()
		}
	}
	stop.Store(true)
	others.Wait()
	Release(x)
	waitFor(t, d, "after all was dropped", func(s device.Stats) bool { return s.LiveBytes == 0 })
}

// A released view does not make its tensor count as pinned.
func TestReleasedViewPinsNothing(t *testing.T) {
	e := open(t)
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	v := new(Value)
	Record(v, Place{}, ir.Reshape, ir.Invalid, ir.Shape{1, 2}, nil, []Arg{t1(x)})
	Release(v)
	if n := e.d.Stats().PinnedBytes; n != 0 {
		t.Errorf("%d bytes pinned", n)
	}
	to := new(Value)
	To(to, e.place(), x)
	Release(x)
	if n := e.d.Stats().PinnedBytes; n != 0 {
		t.Errorf("%d bytes pinned", n)
	}
	e.want(to, 1, 2)
}

// plain uses its buffers without a lock, as drivers may. Only the engine orders a read by the
// host and the end of the buffer.
type plain struct {
	*refdev.Device
	gone *bool
}

func (p *plain) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	err := p.Device.Read(dst, dt, src, off)
	if *p.gone {
		return runtime.ErrClosed
	}
	return err
}

func (p *plain) Free(b runtime.Buffer) {
	*p.gone = true
	p.Device.Free(b)
}

// A value is read and then dropped without Release. Another goroutine frees it after the
// collector has found it. With -race, this test shows that the read happens before that.
func TestReadIsOverBeforeTheCollectorFrees(t *testing.T) {
	drv := &plain{refdev.New(runtime.Config{}), new(bool)}
	d, err := OpenOn(drv, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	e := &env{t, d}
	end := make(chan bool)
	go func() {
		func() {
			x := e.host(e.place(), ir.Shape{2}, 1, 2)
			if err := Read(x, make([]byte, 8)); err != nil {
				t.Error(err)
			}
		}()
		<-end // the detector forgets the accesses of a goroutine that has ended
	}()
	time.Sleep(100 * time.Millisecond) // a channel would order the accesses by itself
	for range 50 {
		goruntime.GC()
		for _, tok := range d.mem.Sweep() { // not Boundary: cleanups order many accesses by chance
			d.mem.FreeToken(tok)
		}
	}
	if n := d.Stats().LiveBytes; n != 0 {
		t.Errorf("%d bytes live", n)
	}
	close(end)
}

// Unreachable memory is freed when the program calls Stats or waits, not only when it computes
// again. A result that was not written pins the memory from which it is computed.
func TestStatsAndSyncSeeWhatDied(t *testing.T) {
	for name, look := range map[string]func(d *Device) int64{
		"Stats":       func(d *Device) int64 { return d.Stats().LiveBytes },
		"Sync":        func(d *Device) int64 { d.Sync(nil); return d.mem.Live.Load() },
		"Stream.Sync": func(d *Device) int64 { d.Default().Sync(nil); return d.mem.Live.Load() },
	} {
		e := open(t)
		func() {
			x := e.host(e.place(), ir.Shape{4}, 1, 2, 3, 4)
			y := mul(e, x, 2) // not written, and dropped without Release
			z := add(e, y, 1)
			if err := Flush(z); err != nil {
				t.Fatal(err)
			}
			Release(x)
			Release(z)
			goruntime.KeepAlive(y)
		}()
		live := int64(-1)
		for end := time.Now().Add(10 * time.Second); live != 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			goruntime.GC()
			live = look(e.d)
		}
		if live != 0 {
			t.Errorf("%s: %d bytes are live", name, live)
		}
	}
}
