package stream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A kernel has two results, one of which overwrites the operand. If it fails and runs op by op,
// the second result must not read what the first one wrote.
func TestFaultDoesNotReadWhatItOverwrites(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	y := mul(e, x, 2)
	z := add(e, x, 1)
	Release(x)
	fault.Set(fault.Launch, 1)
	e.want(y, 2, 4)
	e.want(z, 2, 3)
	st := e.d.Stats()
	if st.Fallbacks != 1 || st.InPlace == 0 {
		t.Errorf("%d fallbacks, %d in place", st.Fallbacks, st.InPlace)
	}
}

// A fault of a job that no caller waited for reaches the values that depend on it, with the line
// of the failed op. It reaches no other value.
func TestFaultReachesWhatDependsOnIt(t *testing.T) {
	var hooks []error
	e := open(t, func(o *device.Options) {
		o.Trace = &device.Trace{Error: func(err error) { hooks = append(hooks, err) }}
	})
	defer fault.Reset()
	a, b := e.d.NewStream(), e.d.NewStream()
	x := e.host(Place{S: a}, ir.Shape{2}, 1, 2)
	other := e.host(Place{S: b}, ir.Shape{2}, 5, 6)
	y := mul(e, x, 2)
	fault.Set(fault.Launch, -1)
	p := e.op(ir.Add, t1(other), t1(y)) // y is handed over, and its job fails
	q := mul(e, other, 2)
	both := e.op(ir.Add, t1(p), t1(q))
	e.d.drain()
	fault.Reset()
	e.want(q, 10, 12)
	for _, v := range []*Value{p, both, y} {
		_, err := e.read(v)
		var oe *operror.Error
		if !errors.As(err, &oe) || oe.Op != "mul" || !strings.Contains(oe.Caller, "stream_test.go") {
			t.Errorf("got %v", err)
		}
	}
	if len(hooks) != 1 {
		t.Errorf("the hook was called %d times: %v", len(hooks), hooks)
	}
	for _, s := range []*Stream{a, b} {
		if err := s.Sync(context.Background()); err != nil {
			t.Errorf("an error that was seen is told again: %v", err)
		}
	}
}

// A result overwrites an operand that has a fault. Only the results that read the operand have
// the fault.
func TestFaultOfWhatIsOverwritten(t *testing.T) {
	e := open(t)
	s := e.d.Default()
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	b := e.host(e.place(), ir.Shape{2}, 5, 6)
	idx := new(Value)
	FromHost(idx, e.place(), ir.Int32, ir.Shape{2}, []byte{9, 0, 0, 0, 0, 0, 0, 0})
	g := new(Value)
	Record(g, Place{}, ir.Gather, ir.Invalid, nil, &ir.Attr{Axes: []int{0}}, []Arg{t1(x), t1(idx)})
	h := mul(e, b, -1)
	p := e.op(ir.Gt, t1(g), t1(b))
	q := add(e, b, 1)
	Release(g)
	st, err := handOver(h, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	st.Release()
	e.want(q, 6, 7)
	if _, err := e.read(p); !errors.Is(err, ir.ErrIndex) {
		t.Errorf("got %v", err)
	}
}

// If memory is lacking for one result, the other results are still computed.
func TestAllocFaultOfOneResult(t *testing.T) {
	e := open(t, func(o *device.Options) { o.MemoryLimit = 1 << 16 })
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	big := new(Value)
	Record(big, e.place(), ir.Full, ir.Float32, ir.Shape{1 << 20}, nil, []Arg{f1(1)})
	more := add(e, big, 1)
	y := mul(e, x, 2)
	e.want(y, 2, 4)
	for _, v := range []*Value{big, more} {
		_, err := e.read(v)
		var oe *operror.Error
		if !errors.Is(err, runtime.ErrOutOfMemory) || !errors.As(err, &oe) {
			t.Errorf("got %v", err)
		}
	}
	e.want(mul(e, y, 2), 4, 8)
	Release(x)
}

// wedge is a device whose next run breaks one of its invariants.
type wedge struct {
	runtime.Device
	armed bool
}

func (w *wedge) Run(ls []runtime.Launch) error {
	if w.armed {
		w.armed = false
		panic("broken invariant")
	}
	return w.Device.Run(ls)
}

// After a panic of a driver the executor is not blocked.
func TestDriverPanicIsAnError(t *testing.T) {
	drv, err := runtime.Lookup("ref")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := drv.Open(runtime.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w := &wedge{Device: inner, armed: true}
	d, err := OpenOn(w, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t, d}
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	_, err = e.read(mul(e, x, 2))
	var ie *operror.Bug
	if !errors.As(err, &ie) {
		t.Fatalf("got %v", err)
	}
	e.want(mul(e, x, 3), 3, 6)
}

// gate is a device whose runs wait until the test lets them through.
type gate struct {
	runtime.Device
	open chan struct{}
}

func (g *gate) Run(ls []runtime.Launch) error {
	<-g.open
	return g.Device.Run(ls)
}

// Recording does not run ahead of a slow device without bound.
func TestRecordingWaitsForASlowDevice(t *testing.T) {
	g := &gate{refdev.New(runtime.Config{}), make(chan struct{})}
	d, err := OpenOn(g, device.Options{QueueCap: 8})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{t, d}
	const n = 4000
	done := make(chan *Value)
	lane := d.def.lane
	go func() {
		x := e.host(e.place(), ir.Shape{2}, 0, 0)
		for range n {
			y := add(e, x, 1)
			Release(x)
			x = y
		}
		done <- x
	}()
	for i := 0; ; i++ {
		select {
		case g.open <- struct{}{}:
			time.Sleep(10 * time.Microsecond)
			lane.Mu.Lock()
			queued := len(lane.Queue)
			lane.Mu.Unlock()
			if queued > exec.MaxQueued+1 { // the caller that recorded the last one waits
				t.Fatalf("%d plans queued", queued)
			}
			continue
		case x := <-done:
			close(g.open)
			e.want(x, n, n)
			return
		}
	}
}

// Ops that matched a plan for other sizes have a source line too.
func TestFaultNamesALineOfLegalPlans(t *testing.T) {
	e := open(t)
	chain := func(rows int) *Value {
		x := e.host(e.place(), ir.Shape{rows, 2}, make([]float32, 2*rows)...)
		b := e.host(e.place(), ir.Shape{1, 2}, 1, 2)
		y := e.op(ir.Add, t1(x), t1(b))
		big := new(Value)
		Record(big, Place{}, ir.Expand, ir.Invalid, ir.Shape{1 << 12, rows, 2}, nil, []Arg{t1(y)})
		return e.op(ir.Add, t1(big), t1(big))
	}
	defer fault.Reset()
	e.want(mul(e, e.op(ir.Add, t1(e.host(e.place(), ir.Shape{3, 2}, make([]float32, 6)...)),
		t1(e.host(e.place(), ir.Shape{1, 2}, 1, 2))), 1), 1, 2, 1, 2, 1, 2)
	y := chain(1)
	fault.Set(fault.Alloc, -1)
	for range 2 {
		_, err := e.read(y)
		var oe *operror.Error
		if !errors.As(err, &oe) || !strings.Contains(oe.Caller, "stream_test.go") {
			t.Fatalf("got %v", err)
		}
	}
}
