package stream

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
)

// copies makes host ops that copy their operand, and counts their runs.
type copies struct {
	lane       *HostLane
	begun, ran atomic.Int32
	fault      atomic.Value // the last one that a run was given
	err        error        // that the runs return
}

func (c *copies) begin() HostFunc {
	c.begun.Add(1)
	return func(dst, src []byte, fault error) error {
		c.ran.Add(1)
		if fault != nil {
			c.fault.Store(fault)
		}
		copy(dst, src)
		return c.err
	}
}

// of copies v and releases it.
func (c *copies) of(v *Value) *Value {
	r := new(Value)
	HostOp{Lane: c.lane, Name: "copy", DT: v.DType(), Shape: v.Shape(), Begin: c.begin}.Record(r, v)
	Release(v)
	return r
}

// TestRandomHostOps: in random programs, recorded or not, copies by host ops change no bits. They
// are made in each run, and no memory remains in use.
func TestRandomHostOps(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 70
	}
	defer testhook.SetSteps(0, 0)
	defer fault.Reset()
	tapes, replays := 0, 0
	var ran int32
	for seed := range uint64(n) {
		p := progen.New(33<<32+seed, progen.Config{Ops: 30, MaxElems: 1000, Groups: groups[seed%2]})
		c := new(copies)
		got, err := runTape(p, seed, c)
		if err != nil {
			small := progen.Shrink(p, func(q *ir.Graph) bool { _, err := runTape(q, seed, new(copies)); return err != nil })
			_, last := runTape(small, seed, new(copies))
			t.Fatalf("seed %d: %v\nshrunk to (%v):\n%v", seed, err, last, small)
		}
		if c.begun.Load() != c.ran.Load() {
			t.Errorf("seed %d: %d of %d host ops ran", seed, c.ran.Load(), c.begun.Load())
		}
		tapes, replays, ran = tapes+got.tapes, replays+got.replays, ran+c.ran.Load()
	}
	if tapes < n/2 || replays < n || ran < int32(10*n) {
		t.Errorf("%d programs gave %d tapes, ran them %d times as lists, and ran %d host ops", n, tapes, replays, ran)
	}
}

// TestHostOpFaults: the function is given its operand's error, and its own error belongs to the
// results that depend on it.
func TestHostOpFaults(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	c := &copies{lane: e.d.NewHostLane()}
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	fault.Set(fault.Launch, -1)
	y := c.of(mul(e, x, 2))
	c.lane.lane.Queued().Wait()
	fault.Reset()
	_, err := e.read(y)
	if e, ok := errors.AsType[*operror.Error](err); !ok || e.Op != "mul" {
		t.Errorf("the result's error is %v", err)
	}
	if got, ok := c.fault.Load().(*operror.Error); !ok || got.Op != "mul" {
		t.Errorf("the function was given %v", c.fault.Load())
	}
	c.err = errors.New("the wire is cut")
	other := mul(e, x, 3)
	z := add(e, c.of(mul(e, x, 2)), 1)
	_, err = e.read(z)
	if at, ok := errors.AsType[*operror.Error](err); !ok || at.Op != "copy" || !errors.Is(err, c.err) || !strings.Contains(at.Caller, "hostop_test.go") {
		t.Errorf("the result's error is %v", err)
	}
	e.want(other, 3, 6)
	if err := e.d.Err(); err != nil {
		t.Errorf("an error that was seen is told again: %v", err)
	}
}

// TestHostOpTape: each run of a tape runs its host ops with new values, also those whose result
// nothing reads. A failing run fails only its own results.
func TestHostOpTape(t *testing.T) {
	e := open(t)
	c := &copies{lane: e.d.NewHostLane()}
	s := e.d.NewStream()
	sc := s.OpenScope()
	in := within(s, sc, []*Value{e.host(Place{S: s}, ir.Shape{2}, 1, 2)})
	taping := s.StartTape(in)
	unread := c.of(mul(e, in[0], 7))
	out := add(e, c.of(mul(e, in[0], 2)), 1)
	Release(unread)
	sc.Keep(out)
	sc.Close()
	tape := taping.End([]*Value{out})
	if tape == nil {
		t.Fatal("no tape")
	}
	defer tape.Release()
	e.want(out, 3, 5)
	for run := range 5 {
		bad := run == 3
		if c.err = nil; bad {
			c.err = errors.New("no")
		}
		x, r := e.host(Place{S: s}, ir.Shape{2}, float32(run), 10), new(Value)
		done, err := tape.Play(s, []*Value{x}, nil, []*Value{r}, run%2 == 0 || bad)
		if !done || (err != nil) != bad {
			t.Fatalf("run %d: played %v, %v", run, done, err)
		}
		if !bad {
			e.want(r, float32(2*run+1), 21)
		}
		c.lane.lane.Queued().Wait()
		if n := c.ran.Load(); n != int32(2*run+4) {
			t.Errorf("run %d: %d host ops ran", run, n)
		}
		Release(x)
	}
}

// TestHostOpsAfterFault: a run of a tape that ends early runs its other host ops with the error as
// their fault.
func TestHostOpsAfterFault(t *testing.T) {
	e := open(t)
	defer fault.Reset()
	c := &copies{lane: e.d.NewHostLane()}
	s := e.d.NewStream()
	sc := s.OpenScope()
	in := within(s, sc, []*Value{e.host(Place{S: s}, ir.Shape{1 << 16}, make([]float32, 1<<16)...)})
	taping := s.StartTape(in)
	out := in[0]
	for range 3 {
		out = c.of(mul(e, out, 2))
	}
	sc.Keep(out)
	sc.Close()
	tape := taping.End([]*Value{out})
	if tape == nil {
		t.Fatal("no tape")
	}
	defer tape.Release()
	c.lane.lane.Queued().Wait()
	before := c.ran.Load()
	x, r := e.host(Place{S: s}, ir.Shape{1 << 16}, make([]float32, 1<<16)...), new(Value)
	for range 32 { // which take what the pool has
		defer Release(e.host(Place{S: s}, ir.Shape{1 << 16}, make([]float32, 1<<16)...))
	}
	fault.SetAfter(fault.Alloc, 1, -1)
	_, err := tape.Play(s, []*Value{x}, nil, []*Value{r}, false)
	fault.Reset()
	c.lane.lane.Queued().Wait()
	if n := c.ran.Load() - before; err == nil || n != 3 || c.fault.Load() == nil {
		t.Errorf("%d of 3 host ops ran, with the fault %v; %v", n, c.fault.Load(), err)
	}
}

// TestHostOpPanic: a panic of the function is an error of the result, and the lane goes on.
func TestHostOpPanic(t *testing.T) {
	e := open(t)
	c := &copies{lane: e.d.NewHostLane()}
	x := e.host(e.place(), ir.Shape{2}, 1, 2)
	r := new(Value)
	HostOp{Lane: c.lane, Name: "bad", DT: ir.Float32, Shape: ir.Shape{2}, Begin: func() HostFunc {
		return func([]byte, []byte, error) error { panic(fmt.Sprint("broken")) }
	}}.Record(r, x)
	if _, err := e.read(r); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("the error is %v", err)
	}
	e.want(c.of(x), 1, 2)
}
