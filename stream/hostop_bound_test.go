package stream

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/refdev"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// hostTape is a tape with three host ops, one of which nothing reads, that sets w to its sum with
// what they made.
type hostTape struct {
	e    *env
	c    *copies
	s    *Stream
	x, w *Value
	tape *Tape

	mu    sync.Mutex
	order []string
	fails string // the host op that fails
}

var errHost = errors.New("the wire is cut")

// op is a host op that copies and notes its turn.
func (x *hostTape) op(name string, v *Value) *Value {
	r := new(Value)
	HostOp{Lane: x.c.lane, Name: name, DT: v.DType(), Shape: v.Shape(), Begin: func() HostFunc {
		x.mu.Lock()
		x.order = append(x.order, name)
		x.mu.Unlock()
		f := x.c.begin()
		return func(dst, src []byte, fault error) error {
			x.mu.Lock()
			bad := x.fails == name
			x.mu.Unlock()
			if bad {
				return errHost
			}
			return f(dst, src, fault)
		}
	}}.Record(r, v)
	return r
}

// hostShape is so large that the device runs lists of the tape launch by launch.
var hostShape = ir.Shape{4, 4}

func (x *hostTape) full(v float32) *Value {
	return x.e.host(Place{S: x.s}, hostShape, slices.Repeat([]float32{v}, hostShape.Elems())...)
}

func newHostTape(t *testing.T, change ...func(*device.Options)) *hostTape {
	e := open(t, change...)
	x := &hostTape{e: e, c: &copies{lane: e.d.NewHostLane()}, s: e.d.NewStream()}
	x.x, x.w = x.full(1), x.full(100)
	x.tape = tapeOf(t, x.s, []*Value{x.x}, func(in []*Value) []*Value {
		a := mul(e, in[0], 2)
		first := x.op("first", a)
		b := between(e, add(e, in[0], 1)) // does not read first
		unread := x.op("unread", b)
		Release(unread)
		second := x.op("second", e.op(ir.Mul, t1(b), t1(b)))
		y := e.op(ir.Add, t1(first), t1(second))
		Set(x.w, e.op(ir.Add, t1(x.w), t1(y)))
		return []*Value{y, first}
	})
	t.Cleanup(x.tape.Release)
	x.c.lane.lane.Queued().Wait()
	x.order = nil
	return x
}

// results computes in Go what the tape computes of v: y and first.
func (x *hostTape) results(v float32) [2]float32 {
	b := 3 * (v + 1) // between sorts equal elements
	return [2]float32{2*v + b*b, 2 * v}
}

func (x *hostTape) want(v *Value, want float32) {
	x.e.t.Helper()
	x.e.want(v, slices.Repeat([]float32{want}, hostShape.Elems())...)
}

// begun checks that each host op began once, in the order of recording.
func (x *hostTape) begun(when string) {
	x.e.t.Helper()
	x.c.lane.lane.Queued().Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if want := []string{"first", "unread", "second"}; !slices.Equal(x.order, want) {
		x.e.t.Errorf("%s: the host ops %v began, want %v", when, x.order, want)
	}
	x.order = nil
}

// runner runs a hostTape for an argument: played, as a list, or bound.
type runner struct {
	name  string
	start func(x *hostTape) (run func(v float32) ([]*Value, error))
}

var runners = []runner{
	{"list", func(x *hostTape) func(float32) ([]*Value, error) {
		return func(v float32) ([]*Value, error) {
			in, out := x.full(v), []*Value{new(Value), new(Value)}
			defer Release(in)
			done, err := x.tape.Play(x.s, []*Value{in}, nil, out, true)
			if !done {
				return nil, errors.New("the tape does not fit")
			}
			return out, err
		}
	}},
	{"no wait", func(x *hostTape) func(float32) ([]*Value, error) {
		return func(v float32) ([]*Value, error) {
			in, out := x.full(v), []*Value{new(Value), new(Value)}
			defer Release(in)
			done, err := x.tape.Play(x.s, []*Value{in}, nil, out, false)
			if !done || err != nil {
				return nil, fmt.Errorf("played %v, %w", done, err)
			}
			_, err = x.e.read(out[0])
			return out, err
		}
	}},
	{"bound", func(x *hostTape) func(float32) ([]*Value, error) {
		in, out := x.full(0), []*Value{new(Value), new(Value)}
		b, err := x.tape.Bind(x.s, []*Value{in}, out)
		if err != nil || b == nil {
			x.e.t.Fatal(b, err)
		}
		x.e.t.Cleanup(b.Close)
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(x.order) > 0 {
			x.e.t.Errorf("Bind ran the host ops %v", x.order)
		}
		return func(v float32) ([]*Value, error) {
			from, data := x.full(v), make([]byte, 4*hostShape.Elems())
			defer Release(from)
			if err := Read(from, data); err != nil {
				return nil, err
			}
			if err := b.Write(0, ir.Float32, data); err != nil {
				return nil, err
			}
			return out, b.Run(1)
		}
	}},
}

// forRunners runs a test for all runners on devices that prepare lists and that do not.
func forRunners(t *testing.T, f func(t *testing.T, x *hostTape, kind string, run func(v float32) ([]*Value, error))) {
	defer testhook.SetSteps(0, 0)
	for _, r := range runners {
		for name, change := range map[string]func(*device.Options){
			"ref":    func(*device.Options) {},
			"short":  func(o *device.Options) { o.QueueCap = 5 },
			"cpu":    func(o *device.Options) { o.Device, o.Compile, o.Threads = "cpu", runtime.CompileOff, 2 },
			"native": func(o *device.Options) { o.Device, o.Compile, o.Threads = "cpu", runtime.CompileNative, 1 },
		} {
			t.Run(r.name+", "+name, func(t *testing.T) {
				if name == "short" {
					testhook.SetSteps(5, 0)
					defer testhook.SetSteps(0, 0)
				}
				x := newHostTape(t, change)
				f(t, x, r.name, r.start(x))
			})
		}
	}
}

// TestHostOpsInLists: a bound tape runs its host ops with new values in each run, in the order of
// recording.
func TestHostOpsInLists(t *testing.T) {
	forRunners(t, func(t *testing.T, x *hostTape, kind string, run func(float32) ([]*Value, error)) {
		w := float32(100)
		for i := range 12 {
			if i == 0 {
				w = 100 + x.results(1)[0] // of the recording
			}
			out, err := run(float32(i))
			if err != nil {
				t.Fatal(err)
			}
			want := x.results(float32(i))
			w += want[0]
			x.want(out[0], want[0])
			x.want(out[1], want[1])
			x.want(x.w, w)
			x.begun(fmt.Sprint("run ", i))
			if kind != "bound" {
				Release(out[0])
				Release(out[1])
			}
		}
		x.e.d.countBound()
		s := x.e.d.Stats()
		if kind != "bound" && s.Replays < 6 || kind == "bound" && s.BoundRuns < 12 {
			t.Errorf("%d replays, %d bound runs of 12", s.Replays, s.BoundRuns)
		}
	})
}

// countBound counts the runs of bound tapes.
func (d *Device) countBound() { _ = d.Stats() }

// TestHostOpsInListsFail: a fault in a host op, or of a launch before, between or behind them,
// fails what depends on it. Each host op still runs once, and later runs are right.
func TestHostOpsInListsFail(t *testing.T) {
	defer fault.Reset()
	forRunners(t, func(t *testing.T, x *hostTape, kind string, run func(float32) ([]*Value, error)) {
		release := func(out []*Value) {
			if kind != "bound" {
				for _, v := range out {
					Release(v)
				}
			}
		}
		for range 20 {
			out, err := run(3)
			if err != nil {
				t.Fatal(err)
			}
			release(out)
			x.begun("before")
		}
		if kind == "bound" { // a run in fixed memory, unlike the later ones
			x.fails = "second"
			out, err := run(5)
			x.fails = ""
			x.begun("in fixed memory")
			if !errors.Is(err, errHost) {
				t.Fatal(err)
			}
			x.want(out[1], x.results(5)[1])
			if _, err := x.e.read(out[0]); !errors.Is(err, errHost) {
				t.Errorf("a result has the error %v", err)
			}
		}
		for turn := range 18 {
			fresh := x.full(10)
			Set(x.w, fresh)
			Release(fresh)
			bad := ""
			switch turn % 6 {
			case 1:
				bad = "first"
			case 3:
				bad = "second"
			case 5:
				bad = "unread"
			default:
				fault.SetAfter(fault.Launch, turn/2, 1)
			}
			x.mu.Lock()
			x.fails = bad
			x.mu.Unlock()
			out, err := run(float32(turn))
			x.s.lane.Last().Wait()
			fault.Reset()
			x.mu.Lock()
			x.fails = ""
			x.mu.Unlock()
			x.begun(fmt.Sprintf("turn %d, failing %q", turn, bad))
			want := x.results(float32(turn))
			if _, ok := errors.AsType[*fault.Error](err); ok && kind == "bound" {
				continue // of copying a result to its tensor
			}
			if fails := bad == "first" || bad == "second"; fails != errors.Is(err, errHost) || !fails && err != nil {
				t.Fatalf("turn %d, failing %q: %v", turn, bad, err)
			} else if fails {
				if _, err := x.e.read(x.w); !errors.Is(err, errHost) {
					t.Errorf("turn %d, failing %q: the tensor that is set has the error %v", turn, bad, err)
				}
			} else {
				x.want(out[0], want[0])
				x.want(out[1], want[1])
				x.want(x.w, 10+want[0])
			}
			release(out)
		}
	})
}

// TestHostOpsInListsLackMemory: a run that fails for lack of memory runs its host ops with an error,
// and the next one is right.
func TestHostOpsInListsLackMemory(t *testing.T) {
	defer fault.Reset()
	forRunners(t, func(t *testing.T, x *hostTape, kind string, run func(float32) ([]*Value, error)) {
		for turn := range 24 {
			fresh := x.full(10)
			Set(x.w, fresh)
			Release(fresh)
			in := x.full(2)
			fault.SetAfter(fault.Alloc, turn/2, -1)
			if turn%2 == 0 {
				fault.Reset()
			}
			out, err := run(2)
			x.s.lane.Last().Wait()
			fault.Reset()
			if err == nil {
				want := x.results(2)
				x.want(out[0], want[0])
				x.want(x.w, 10+want[0])
			} else if turn%2 == 0 {
				t.Fatal(err)
			}
			x.c.lane.lane.Queued().Wait()
			if n := len(x.order); n != 3 && (err == nil || n != 0) {
				t.Errorf("turn %d: the host ops %v began, with %v", turn, x.order, err)
			}
			x.order = nil
			Release(in)
			if kind != "bound" {
				for _, v := range out {
					Release(v)
				}
			}
		}
	})
}

// counting is a device that counts runs of lists.
type counting struct {
	*refdev.Device
	runs atomic.Int32
}

func (d *counting) Run(ls []runtime.Launch) error {
	d.runs.Add(int32(len(ls)))
	return d.Device.Run(ls)
}

// TestListsRunBesideHostOps: launches that do not read the result of a host op run while it runs,
// those before the first reader of the same part too.
func TestListsRunBesideHostOps(t *testing.T) {
	drv := &counting{Device: refdev.New(runtime.Config{})}
	d, err := OpenOn(drv, device.Options{Explore: device.ExploreWait, Fusion: device.FusionOff})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e, s, lane := &env{t, d}, d.NewStream(), d.NewHostLane()
	x := e.host(Place{S: s}, ir.Shape{2}, 1, 2)
	var until atomic.Int32
	late := errors.New("nothing ran meanwhile")
	tape := tapeOf(t, s, []*Value{x}, func(in []*Value) []*Value {
		a := new(Value)
		HostOp{Lane: lane, Name: "slow", DT: ir.Float32, Shape: ir.Shape{2}, Begin: func() HostFunc {
			return func(dst, src []byte, _ error) error {
				copy(dst, src)
				for end := time.Now().Add(time.Minute); drv.runs.Load() < until.Load(); goruntime.Gosched() {
					if time.Now().After(end) {
						return late
					}
				}
				return nil
			}
		}}.Record(a, mul(e, in[0], 2))
		b := add(e, mul(e, in[0], 5), 1) // two launches
		return []*Value{e.op(ir.Add, t1(a), t1(b))}
	})
	defer tape.Release()
	for run := range 6 {
		if run == 5 { // the op's operand, and the two
			until.Store(drv.runs.Load() + 3)
		}
		was := d.Stats().Replays
		out, err := play(t, tape, s, x)
		if err != nil {
			t.Fatal(err)
		}
		e.want(out[0], 8, 15)
		Release(out[0])
		if run == 5 && d.Stats().Replays == was {
			t.Error("it was not a list")
		}
	}
	out := []*Value{new(Value)}
	b, err := tape.Bind(s, []*Value{x}, out)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for run := range 3 {
		if until.Store(0); run > 0 {
			until.Store(drv.runs.Load() + 3)
		}
		if err := b.Run(1); err != nil {
			t.Fatal(err)
		}
		e.want(out[0], 8, 15)
	}
	if b.fixed == nil {
		t.Error("it was not fixed")
	}
}

// TestHostOpListsAreFlat: ten thousand runs of a bound tape with host ops leave nothing behind.
func TestHostOpListsAreFlat(t *testing.T) {
	turns := 10000
	if testing.Short() {
		turns = 1000
	}
	for _, r := range runners {
		t.Run(r.name, func(t *testing.T) {
			x := newHostTape(t, func(o *device.Options) { o.Device, o.Compile, o.Threads = "cpu", runtime.CompileOff, 1 })
			run := r.start(x)
			step := func() {
				out, err := run(0)
				if err != nil {
					t.Fatal(err)
				}
				if r.name != "bound" {
					Release(out[0])
					Release(out[1])
				}
			}
			for range 10 {
				step()
			}
			x.order = nil
			goruntime.GC()
			was := x.e.d.Stats()
			for range turns {
				step()
			}
			x.c.lane.lane.Queued().Wait()
			now := x.e.d.Stats()
			if now.LiveBytes > was.LiveBytes+1<<12 || now.Runtime.AllocBytes+now.Runtime.PoolBytes > was.Runtime.AllocBytes+was.Runtime.PoolBytes+1<<20 {
				t.Errorf("live bytes %d, of the system %d; before %d, %d", now.LiveBytes, now.Runtime.AllocBytes+now.Runtime.PoolBytes,
					was.LiveBytes, was.Runtime.AllocBytes+was.Runtime.PoolBytes)
			}
			if n := len(x.order); n != 3*turns {
				t.Errorf("%d host ops began in %d runs", n, turns)
			}
			if r.name != "bound" && now.Replays-was.Replays < int64(turns) {
				t.Errorf("%d replays in %d runs", now.Replays-was.Replays, turns)
			}
		})
	}
}
