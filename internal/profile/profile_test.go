package profile

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

type program struct{ k *codegen.Kernel }

func (p program) Kernel() runtime.Kernel { return p.k }

// launchOf is a launch of a kernel that adds adds scalars to its operand.
func launchOf(adds int, points int64) runtime.Launch {
	k := &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: ir.Float32}, {Kind: codegen.Output, DT: ir.Float32}},
		Body:     []ir.Instr{{Op: ir.Load, DT: ir.Float32, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}},
	}
	for i := range adds {
		k.Body = append(k.Body, ir.Instr{Op: ir.Add, DT: ir.Float32, Args: [4]ir.Ref{ir.Ref(i), 0, ir.None, ir.None}})
	}
	k.Stores = []codegen.Store{{Operand: 1, Value: ir.Ref(adds)}}
	l := runtime.Launch{Prog: program{k}, Rank: 1, Kept: 1, Args: make([]runtime.Access, 2)}
	l.Dims[0], l.Args[0].Stride[0], l.Args[1].Stride[0] = points, 1, 1
	return l
}

var sizes = func() (s [ir.NumDTypes]int) {
	for i := range s {
		s[i] = 4
	}
	return s
}()

// run runs a list times times; launch i takes took[i] nanoseconds.
func run(p *Profile, l *List, list []runtime.Launch, took []int, times int) (timed []int64) {
	for range times {
		start := time.Now()
		if !l.Due() {
			p.Whole(l, 1, start, len(list), true)
			continue
		}
		timed = append(timed, l.Runs()+1)
		var each []Launch
		sum := time.Duration(0)
		for i := range list {
			each = append(each, Launch{Start: start, Took: time.Duration(took[i]), First: i, N: 1})
			sum += time.Duration(took[i])
		}
		p.Timed(l, 1, start, sum, list, &sizes, each)
	}
	return timed
}

// TestSampling: runs are timed rarely, and count with the times of the next timed run; runs since
// then count with those of the last.
func TestSampling(t *testing.T) {
	p, l := New(), new(List)
	list := []runtime.Launch{launchOf(1, 100), launchOf(3, 50)}
	timed := run(p, l, list, []int{10, 20}, 70)
	if want := []int64{1, 3, 8, 16, 32, 64}; !slices.Equal(timed, want) {
		t.Errorf("timed runs %v, want %v", timed, want)
	}
	s := p.State()
	if len(s.Kernels) != 2 || l.Runs() != 70 {
		t.Fatalf("%d kernels, %d runs", len(s.Kernels), l.Runs())
	}
	for i, want := range []Kernel{{Runs: 70, Timed: 6, Nanos: 700, Bytes: 70 * 800, Flops: 70 * 100}, {Runs: 70, Timed: 6, Nanos: 1400, Bytes: 70 * 400, Flops: 70 * 150}} {
		got := s.Kernels[i]
		if got.Runs != want.Runs || got.Timed != want.Timed || got.Nanos != want.Nanos || got.Bytes != want.Bytes || got.Flops != want.Flops {
			t.Errorf("kernel %d: %+v, want %+v", i, got, want)
		}
	}
	took, share := p.Work(1e9, 1e9) // a nanosecond for each operation or byte
	if took != 2100 || math.Abs(share-(70*800+70*400)/2100.) > 1e-9 {
		t.Errorf("took %d, share %g", took, share)
	}
	if _, share := p.Work(0, 1); share != 0 {
		t.Errorf("share %g of an unknown peak", share)
	}
}

// TestChainShares: launches of a chain share its time in proportion to their bytes and operations.
func TestChainShares(t *testing.T) {
	p := New()
	list := []runtime.Launch{launchOf(1, 100), launchOf(3, 50)}
	p.Timed(new(List), 1, time.Now(), 1450, list, &sizes, []Launch{{Start: time.Now(), Took: 1450, First: 0, N: 2}})
	s := p.State()
	if a, b := s.Kernels[0].Nanos, s.Kernels[1].Nanos; math.Abs(a-900) > 1e-9 || math.Abs(b-550) > 1e-9 {
		t.Errorf("%g and %g of 1450", a, b)
	}
}

// TestBounds: in every program a profile stays small, and counts what it dropped.
func TestBounds(t *testing.T) {
	p := New()
	for i := range maxKernels + 100 {
		l := launchOf(i%40+1, 1)
		l.Prog.(program).k.Scalars = make([]ir.DType, i/40) // another key
		p.Timed(new(List), 1, time.Now(), 1, []runtime.Launch{l}, &sizes, []Launch{{Start: time.Now(), Took: 1, N: 1}})
	}
	for range maxSpans {
		p.Tell(Span{Row: RowFault})
	}
	for range maxLists + 10 {
		p.Whole(new(List), 1, time.Now(), 1, true)
	}
	s := p.State()
	if len(s.Kernels) != maxKernels || s.Left.Runs != 100 || len(s.Spans) != maxSpans || s.Dropped == 0 {
		t.Errorf("%d kernels, %d left; %d spans, %d dropped", len(s.Kernels), s.Left.Runs, len(s.Spans), s.Dropped)
	}
}

// TestMemoryPoints: points of memory are thinned out, but never the highest.
func TestMemoryPoints(t *testing.T) {
	var x points
	start := time.Now()
	for i := range 100_000 {
		live := int64(i % 1000)
		if i == 54_321 {
			live = 1_000_000
		}
		x.add(Point{Time: start.Add(time.Duration(i) * 300 * time.Microsecond), Live: live})
	}
	high := slices.MaxFunc(x.list, func(a, b Point) int { return int(a.Live - b.Live) })
	if len(x.list) > maxPoints || len(x.list) < maxPoints/4 || high.Live != 1_000_000 {
		t.Errorf("%d points, the highest %d", len(x.list), high.Live)
	}
	if !slices.IsSortedFunc(x.list, func(a, b Point) int { return a.Time.Compare(b.Time) }) {
		t.Error("not in order")
	}
}

// TestNil: a nil profile does nothing.
func TestNil(t *testing.T) {
	var p *Profile
	p.Tell(Span{})
	l := new(List)
	run(p, l, []runtime.Launch{launchOf(1, 1)}, []int{1}, 5)
	if l.Runs() != 5 {
		t.Errorf("%d runs", l.Runs())
	}
	if took, share := p.Work(1, 1); took != 0 || share != 0 {
		t.Error("it worked")
	}
}
