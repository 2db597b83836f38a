package scatter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// The operands of the tests' kernel: float32 values join x at int32 indices, and the result is out.
const (
	x = iota
	index
	values
	out
	numOperands
)

var kernel = Kernel{From: x, To: out, Indices: []int{index}, Index: ir.Int32, DT: ir.Float32, Mode: ir.IndexDrop, How: ir.CombineAdd}

// loads is a Host whose two phases are the loads of the indices and of the values.
type loads struct {
	arenas [4]memory.Arena
	args   [4][2]operands.Args
	opened [4]bool
	most   int64  // bytes that a thread may reserve
	rec    *steps // nil: nothing is recorded
}

func (h *loads) Reserve(thread int, n int64) unsafe.Pointer {
	if n > h.most {
		return nil
	}
	return h.arenas[thread].Reserve(n)
}

func (h *loads) Open(thread int) (first, second operands.Evaluator) {
	h.opened[thread] = true
	return load{&h.args[thread][0], h.rec}, load{&h.args[thread][1], h.rec}
}

func (h *loads) Close(thread int) { h.opened[thread] = false }

func (h *loads) free() {
	for i := range h.arenas {
		h.arenas[i].Free()
	}
}

// load is one of the phases.
type load struct {
	args *operands.Args
	rec  *steps
}

func (l load) Args() *operands.Args { return l.args }

func (l load) Eval(phase int, begin, end int64) {
	evaluate(l.args, phase, begin, end)
	if l.rec != nil {
		a := *l.args
		a.Ops, a.Bufs = slices.Clone(a.Ops), slices.Clone(a.Bufs)
		l.rec.Do(func(*operands.Pointers) { evaluate(&a, phase, begin, end) })
	}
}

func evaluate(a *operands.Args, phase int, begin, end int64) {
	var at [runtime.MaxRank]int64
	for d, p := a.Rank-1, begin; d >= 0; d-- {
		at[d], p = p%a.Dims[d], p/a.Dims[d]
	}
	a.Move(operands.Gather, &a.Ops[index+phase], 4, &at, end-begin, a.Bufs[0])
}

// steps is a Recorder.
type steps struct {
	list  []func(*operands.IndexFault)
	stops []int
}

func (s *steps) Region(unsafe.Pointer, int64) {}
func (s *steps) Stop()                        { s.stops = append(s.stops, len(s.list)) }
func (s *steps) Lose()                        { panic("a scatter can always be recorded") }

func (s *steps) Do(f func(p *operands.Pointers), pointers ...operands.Pointer) {
	s.Check(func(p *operands.Pointers, _ *operands.IndexFault) { f(p) }, pointers...)
}

func (s *steps) Check(f func(p *operands.Pointers, fault *operands.IndexFault), pointers ...operands.Pointer) {
	var p operands.Pointers
	for i := range pointers {
		p[i] = pointers[i].P
	}
	s.list = append(s.list, func(fault *operands.IndexFault) { f(&p, fault) })
}

// buffer is memory of a launch.
type buffer []float32

func (b *buffer) Bytes() int64 { return int64(4 * len(*b)) }

// scattering is a scatter of n values into an axis of size elements, for each of outer times inner
// rows.
type scattering struct {
	Kernel
	outer, inner, n, size int64
	same, inPlace, last   bool // the inner rows have equal indices; the output is the operand; the axis is innermost
	x, values, out        buffer
	index                 []int32
}

func newScattering(rng *rand.Rand, k Kernel, outer, inner, n, size int64) *scattering {
	c := &scattering{Kernel: k, outer: outer, inner: inner, n: n, size: size}
	for range outer * inner * size {
		c.x, c.out = append(c.x, float32(rng.IntN(100))), append(c.out, -1)
	}
	for range outer * inner * n {
		c.values = append(c.values, float32(rng.IntN(100)))
		c.index = append(c.index, int32(rng.Int64N(size+2)-1))
	}
	return c
}

// want computes the result point by point.
func (c *scattering) want() buffer {
	w := slices.Clone(c.x)
	for o := range c.outer {
		for i := range c.inner {
			for p := range c.n {
				value := (o*c.n+p)*c.inner + i
				e := int64(c.index[value])
				if c.same {
					e = int64(c.index[o*c.n+p])
				}
				if c.Mode == ir.IndexDrop && (e < 0 || e >= c.size) {
					continue
				}
				e = min(max(e, 0), c.size-1)
				to := (o*c.size+e)*c.inner + i
				if c.last {
					to = (o*c.inner+i)*c.size + e
				}
				if w[to] += c.values[value]; c.How == ir.CombineSet {
					w[to] = c.values[value]
				}
			}
		}
	}
	return w
}

// launch returns the launch for some threads.
func (c *scattering) launch(most int64) *Launch {
	bases := [numOperands]unsafe.Pointer{ptr(c.x), ptr(c.index), ptr(c.values), ptr(c.out)}
	l := &runtime.Launch{Rank: 3, Kept: 2, Dims: [runtime.MaxRank]int64{c.outer, c.inner, c.n}, Args: make([]runtime.Access, numOperands)}
	row, step := []int64{c.size * c.inner, 1, 0}, c.inner
	if c.last {
		row, step = []int64{c.inner * c.size, c.size, 0}, 1
	}
	for i, strides := range [numOperands][]int64{row, {c.n * c.inner, 1, c.inner}, {c.n * c.inner, 1, c.inner}, row} {
		copy(l.Args[i].Stride[:], strides)
	}
	if c.same {
		copy(l.Args[index].Stride[:], []int64{c.n, 0, 1})
	}
	l.Args[x].Buf, l.Args[out].Buf = &c.x, &c.out
	if c.inPlace {
		copy(c.out, c.x)
		l.Args[x].Buf, bases[x] = &c.out, bases[out]
	}
	for _, i := range []int{x, out} {
		l.Args[i].IndexStride, l.Args[i].IndexSize = step, c.size
	}
	f := &Launch{Kernel: &c.Kernel, Order: c.Order(l, most), Threads: most, Values: values, Scratch: 64}
	f.DType = &fold.ByGo(ir.KeepDenormals).DTypes[ir.Float32]
	f.Args = operands.Args{Rank: 3, Fault: new(operands.IndexFault)}
	order := []int{0, 1, 2}
	if f.Cols {
		order = []int{0, 2, 1}
	}
	for i, base := range bases {
		o := operands.Operand{Base: base, IndexStride: l.Args[i].IndexStride, IndexSize: l.Args[i].IndexSize}
		for d, dim := range order {
			o.Stride[d], f.Args.Dims[d] = l.Args[i].Stride[dim], l.Dims[dim]
		}
		f.Args.Ops = append(f.Args.Ops, o)
	}
	return f
}

func ptr[S ~[]E, E any](s S) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// TestJob compares scatters with a loop over the points: rows, columns and parts of the axis, on
// one thread and several, in place and not. Recorded work does the same again.
func TestJob(t *testing.T) {
	pool := threads.NewPool(4)
	defer pool.Close()
	h := &loads{most: 1 << 30}
	defer h.free()
	rng := rand.New(rand.NewPCG(4, 4))
	var j Job
	ways := map[string]bool{}
	for _, s := range [][4]int64{{1, 1, 5000, 40}, {1, 1, 3, 1}, {3, 1, 7, 5000}, {1, 64, 90, 12}, {2, 300, 9, 4}, {5, 40, 1, 3}, {2, 3, 0, 4}} {
		for n := range 64 {
			k := kernel
			k.Mode = []ir.IndexMode{ir.IndexDrop, ir.IndexClamp}[n%2]
			k.How = []ir.Combine{ir.CombineAdd, ir.CombineSet}[n/2%2]
			c := newScattering(rng, k, s[0], s[1], s[2], s[3])
			c.same, c.inPlace, c.last = n/4%2 == 0, n/8%2 == 0, n/16%2 == 0
			what, want := fmt.Sprintf("%v, case %d", s, n), c.want()
			for _, most := range []int64{1, 4} {
				l := c.launch(most)
				if h.rec = nil; most == 1 {
					h.rec = &steps{}
					l.Recorder = h.rec
				}
				if n/32 == 0 {
					l.Values = -1 // evaluated instead of read in place
				}
				ways[fmt.Sprintf("columns %v, parts %v", l.Cols, l.parts > 1)] = true
				if j.Launch = *l; !j.Run(h, pool) {
					t.Fatalf("%s: memory was refused", what)
				}
				if !slices.Equal(c.out, want) {
					t.Fatalf("%s, %d threads: %v, want %v", what, most, c.out, want)
				}
				if h.rec == nil {
					continue
				}
				for i := range c.out {
					c.out[i] = -1
				}
				if c.inPlace {
					copy(c.out, c.x)
				}
				for _, f := range h.rec.list {
					f(nil)
				}
				if !slices.Equal(c.out, want) {
					t.Fatalf("%s, replayed: %v, want %v", what, c.out, want)
				}
			}
		}
	}
	if len(ways) != 4 {
		t.Errorf("not every way was taken: %v", ways)
	}
	if h.opened != [4]bool{} {
		t.Error("an evaluator is still open")
	}
}

// TestFault checks that an index out of range is found before anything is written, that the least
// one is kept, and that recorded work stops after the search.
func TestFault(t *testing.T) {
	pool := threads.NewPool(4)
	defer pool.Close()
	h := &loads{most: 1 << 30}
	defer h.free()
	k := kernel
	k.Mode = ir.IndexError
	for _, most := range []int64{1, 4} {
		c := newScattering(rand.New(rand.NewPCG(5, 5)), k, 1, 1, 9000, 40)
		for i := range c.index {
			c.index[i] = int32(i % 40)
		}
		c.index[8000], c.index[30] = 41, 77
		l := c.launch(most)
		if h.rec = nil; most == 1 {
			h.rec = &steps{}
			l.Recorder = h.rec
		}
		var j Job
		if j.Launch = *l; !j.Run(h, pool) {
			t.Fatal("memory was refused")
		}
		if f := l.Args.Fault; !f.Set || f.Operand != out || f.Index != 41 {
			t.Errorf("%d threads: operand %d, index %d is reported", most, f.Operand, f.Index)
		}
		if slices.ContainsFunc(c.out, func(v float32) bool { return v != -1 }) {
			t.Errorf("%d threads: something was written", most)
		}
		if h.rec == nil {
			continue
		}
		var again operands.IndexFault
		for _, f := range h.rec.list {
			f(&again)
		}
		if again.Index != 41 || !slices.Equal(h.rec.stops, []int{len(h.rec.list)}) {
			t.Errorf("the recording finds %d, and its %d steps stop after %v", again.Index, len(h.rec.list), h.rec.stops)
		}
	}
}

// TestRefused checks that nothing is written if memory is refused.
func TestRefused(t *testing.T) {
	pool := threads.NewPool(2)
	defer pool.Close()
	c := newScattering(rand.New(rand.NewPCG(6, 6)), kernel, 1, 1, 50, 9)
	var j Job
	if j.Launch = *c.launch(2); j.Run(&loads{most: 100}, pool) {
		t.Error("a launch without memory ran")
	}
	if slices.ContainsFunc(c.out, func(v float32) bool { return v != -1 }) {
		t.Error("something was written")
	}
}
