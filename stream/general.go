package stream

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/millrace-go/millrace/internal/poly"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// General is a tape whose arguments have axes of any size. The other sizes in the tape are
// polynomials of these sizes with integer coefficients. A few trials determine the polynomials.
type General struct {
	tape   *Tape
	axes   [][]int // the number of each axis of each argument; -1 for a fixed size
	free   []int   // the numbered axes that may have another size
	polys  []poly.Poly
	forms  [][]int               // shapes, as indices into polys
	inputs []int                 // indices into forms, one for each argument
	memory map[int]generalMemory // by index of the constant of the tape
	nodes  []generalNode
	parts  []generalPart
}

// generalPart is a segment of the tape.
type generalPart struct {
	first   int                  // index of its first node in nodes
	from    map[int32]tapeSource // sources of its operands, by slot
	scalars []partScalar         // the scalars that depend on sizes
}

type partScalar struct {
	at int32 // id of the scalar in the segment
	generalScalar
}

// generalMemory describes how the tape sees memory from outside. A view of it may depend on
// sizes.
type generalMemory struct {
	dt           ir.DType
	form, offset int
	stride       []int // indices into polys, like form and offset; nil if the tape's own view stays
}

// generalNode is an op of a General.
type generalNode struct {
	form        int
	start, step []int // indices into polys
}

// generalScalar is a scalar: fixed bits, the value of a polynomial, or the reciprocal of that
// value.
type generalScalar struct {
	kind scalarKind
	dt   ir.DType
	bits uint64
	poly int
}

type scalarKind uint8

const (
	scalarFixed scalarKind = iota
	scalarWhole
	scalarReciprocal
)

// mostAxes is the largest number of free axes of a General. Each axis adds polynomials that the
// trials must distinguish.
const mostAxes = 6

// checks is the number of trials beyond those that determine the polynomials.
const checks = 4

var errNotGeneral = errors.New("sizes of the recording do not follow from the sizes of its inputs")

// Generalise finds out how the sizes in a tape depend on the sizes of its arguments' axes. axes
// has the number of each axis, or -1 if its size is fixed. sizes are the axes' sizes in the tape.
// Sizes 0 and 1 stay fixed, because a program may choose its ops by them. f does in a trial what
// the tape does. Generalise returns nil if the ops depend on more than the sizes. The General is
// a user of the tape.
func Generalise(t *Tape, axes [][]int, sizes []int, f func(*Trial)) *General {
	g := &General{tape: t, axes: axes, memory: map[int]generalMemory{}}
	for axis, n := range sizes {
		if n > 1 {
			g.free = append(g.free, axis)
		}
	}
	if len(t.sets) > 0 || len(t.states) > 0 || len(g.free) == 0 || len(g.free) > mostAxes || !t.retain() {
		return nil
	}
	if g.find(sizes, f) {
		return g
	}
	t.Release()
	return nil
}

// Settle runs the ops that are queued on the default stream and writes all their results, such as
// new weights. A tape of a computation that uses these results can then refer to their memory.
func (d *Device) Settle() {
	d.def.mu.Lock()
	defer d.def.unlock()
	d.def.flush(segment.End{Reason: segment.ReasonSync, ID: -1, All: true}, true)
}

// Release ends the General's use of its tape. It is called once.
func (g *General) Release() { g.tape.Release() }

// find makes trials at other sizes and fits polynomials to their numbers.
func (g *General) find(sizes []int, f func(*Trial)) bool {
	if g.tape.hosts {
		return false // a host op has no formula
	}
	for i, x := range g.tape.inputs {
		if x.view != nil && slices.ContainsFunc(g.axes[i], func(axis int) bool { return axis >= 0 && sizes[axis] > 1 }) {
			return false // the strides of the view depend on sizes
		}
	}
	degree := degreeOf(len(g.free))
	own := g.tape.trace()
	var points [][]int
	var traces []*traced
	for ranges := len(trialRanges); traces == nil && ranges >= 2; ranges-- {
		points = trialSizes(len(g.free), poly.Needs(len(g.free), degree)+checks, ranges)
		var alike bool
		if traces, alike = g.trials(sizes, points, own, f); !alike {
			return false
		}
	}
	var here []int
	for _, axis := range g.free {
		here = append(here, sizes[axis])
	}
	points, traces = append(points, here), append(traces, own)
	fitter := poly.NewFitter(points, degree)
	return len(traces) > 1 && fitter != nil && g.fit(&fitting{g: g, Fitter: fitter, known: map[string]int{}, forms: map[string]int{}}, traces, points)
}

// degreeOf returns the degree of the polynomials in so many axes. A higher degree needs more
// coefficients, and so more trials.
func degreeOf(axes int) int {
	if axes > 3 {
		return 2
	}
	return 3
}

// trials traces f at each of the given sizes of the free axes. It returns no traces if f fails in
// one trial, and alike is false if f does not do the same ops as the tape.
func (g *General) trials(sizes []int, points [][]int, own *traced, f func(*Trial)) (traces []*traced, alike bool) {
	for _, x := range points {
		tr := g.try(g.sizes(sizes, x), f)
		if tr == nil {
			return nil, true
		}
		if !tr.alike(own) {
			return nil, false
		}
		traces = append(traces, tr)
	}
	return traces, true
}

// trialRanges are the ranges of sizes for trials. If a trial fails, the trials are repeated
// without the largest range: a function may read as many rows of a table as an axis has, and such
// a table may have only some hundred rows.
var trialRanges = [][2]int{{2, 9}, {10, 64}, {65, 300}, {301, 5000}}

// trialSizes returns sizes of the axes for n trials, from the first ranges. It mixes small and
// large, odd and even sizes, so a pattern of the sizes does not pass for a property of the
// program. The first trial uses the largest range, so a failure shows early.
func trialSizes(axes, n, ranges int) (points [][]int) {
	rng := rand.New(rand.NewPCG(uint64(axes), 0x9e3779b97f4a7c15))
	for i := range n {
		x := make([]int, axes)
		for k := range x {
			r := trialRanges[rng.IntN(max(ranges-1, 2))]
			if i%axes == k && i%3 == 0 {
				r = trialRanges[ranges-1]
			}
			x[k] = r[0] + rng.IntN(r[1]-r[0]+1)
		}
		points = append(points, x)
	}
	return points
}

// sizes returns the sizes of all axes when the free axes have the given sizes.
func (g *General) sizes(all, free []int) []int {
	all = slices.Clone(all)
	for i, axis := range g.free {
		all[axis] = free[i]
	}
	return all
}

// try runs a trial and returns its trace, or nil if it failed.
func (g *General) try(sizes []int, f func(*Trial)) *traced {
	var kinds []kind
	for i, x := range g.tape.inputs {
		shape := slices.Clone(x.form.Shape)
		for d, axis := range g.axes[i] {
			if axis >= 0 {
				shape[d] = sizes[axis]
			}
		}
		kinds = append(kinds, kind{x.dt, queue.NewForm(shape)})
	}
	tr := g.tape.dev.newTrial(kinds)
	defer tr.end()
	g.tape.dev.Counts.Trials.Add(1)
	f(tr)
	return tr.trace
}

// fitting holds the state while polynomials are fitted to traces.
type fitting struct {
	*poly.Fitter
	g            *General
	known, forms map[string]int
}

// poly returns the index of the polynomial with these values at the fitter's points.
func (x *fitting) poly(values []int64) (int, bool) {
	key := fmt.Sprint(values)
	if n, ok := x.known[key]; ok {
		return n, n >= 0
	}
	p, ok := x.Fit(values)
	n := -1
	if ok {
		n = len(x.g.polys)
		x.g.polys = append(x.g.polys, p)
	}
	x.known[key] = n
	return n, ok
}

// polys returns the polynomials of a list of numbers that each trace has.
func (x *fitting) polys(traces []*traced, numbers func(*traced) []int64) (list []int, ok bool) {
	columns := make([][]int64, len(numbers(traces[0])))
	for _, tr := range traces {
		for i, n := range numbers(tr) {
			columns[i] = append(columns[i], n)
		}
	}
	for _, values := range columns {
		p, ok := x.poly(values)
		if !ok {
			return nil, false
		}
		list = append(list, p)
	}
	return list, true
}

// form returns the index of the shape with these polynomials as sizes.
func (x *fitting) form(sizes []int) int {
	key := fmt.Sprint(sizes)
	n, ok := x.forms[key]
	if !ok {
		n = len(x.g.forms)
		x.g.forms, x.forms[key] = append(x.g.forms, sizes), n
	}
	return n
}

// fit finds a polynomial for each number in the traces. points has the sizes of the free axes in
// each trace.
func (g *General) fit(x *fitting, traces []*traced, points [][]int) bool {
	for i, in := range g.tape.inputs {
		var list []int
		for d, n := range in.form.Shape {
			values := make([]int64, len(points))
			free := slices.Index(g.free, g.axes[i][d])
			for k, p := range points {
				if values[k] = int64(n); free >= 0 {
					values[k] = int64(p[free])
				}
			}
			p, ok := x.poly(values)
			if !ok {
				return false
			}
			list = append(list, p)
		}
		g.inputs = append(g.inputs, x.form(list))
	}
	last := traces[len(traces)-1]
	for i := range last.memory {
		own := &last.memory[i]
		list, ok := x.polys(traces, func(tr *traced) []int64 { return tr.memory[i].numbers() })
		if !ok {
			return false
		}
		rank := len(own.form.Shape)
		m := generalMemory{dt: own.dt, form: x.form(list[:rank])}
		if len(list) > rank {
			m.offset, m.stride = list[rank], list[rank+1:]
		}
		g.memory[own.constant] = m
	}
	for i := range last.nodes {
		own := &last.nodes[i]
		list, ok := x.polys(traces, func(tr *traced) []int64 { return tr.nodes[i].numbers() })
		if !ok {
			return false
		}
		rank := len(own.shape)
		node := generalNode{form: x.form(list[:rank])}
		if own.Attr != nil {
			node.start, node.step = list[rank:rank+len(own.Attr.Start)], list[rank+len(own.Attr.Start):]
		}
		g.nodes = append(g.nodes, node)
	}
	return g.fitParts(x, traces)
}

// fitParts finds the formula of each scalar of each segment.
func (g *General) fitParts(x *fitting, traces []*traced) bool {
	first := 0
	for _, p := range g.tape.parts {
		part := generalPart{first: first, from: map[int32]tapeSource{}}
		for _, o := range p.operands {
			part.from[o.slot] = o.from
		}
		nodes, _ := p.saved.Nodes()
		for i, n := range nodes {
			k := 0
			for _, a := range n.Args[:n.NArgs] {
				if !a.Scalar {
					continue
				}
				var bits []uint64
				for _, tr := range traces {
					bits = append(bits, tr.nodes[first+i].scalars[k].Bits)
				}
				k++
				s, ok := x.scalar(p.saved.Scalar(a.ID).DT, bits)
				if !ok {
					return false
				}
				if s.kind != scalarFixed {
					part.scalars = append(part.scalars, partScalar{a.ID, s})
				}
			}
		}
		g.parts = append(g.parts, part)
		first += len(nodes)
	}
	return true
}

// scalar finds the kind of a scalar that has these bits in the traces.
func (x *fitting) scalar(dt ir.DType, bits []uint64) (s generalScalar, ok bool) {
	s = generalScalar{dt: dt, bits: bits[0]}
	if !slices.ContainsFunc(bits, func(b uint64) bool { return b != bits[0] }) {
		return s, true
	}
	for _, s.kind = range []scalarKind{scalarWhole, scalarReciprocal} {
		values := make([]int64, 0, len(bits))
		for _, b := range bits {
			n, whole := s.number(b)
			if !whole {
				break
			}
			values = append(values, n)
		}
		if len(values) == len(bits) {
			if s.poly, ok = x.poly(values); ok {
				return s, true
			}
		}
	}
	return s, false
}

// number returns the integer from which a scalar of this kind with these bits was made.
func (s *generalScalar) number(bits uint64) (n int64, ok bool) {
	switch {
	case s.dt.IsFloat():
		v := ir.BitsFloat(s.dt, bits)
		if s.kind == scalarReciprocal {
			v = math.Round(1 / v)
		}
		if math.Abs(v) > 1<<53 || v != math.Trunc(v) {
			return 0, false
		}
		n = int64(v)
	case s.dt.IsInt() && s.kind == scalarWhole:
		shift := 64 - s.dt.Bits()
		if n = int64(bits<<shift) >> shift; !s.dt.IsSigned() {
			n = int64(bits << shift >> shift)
		}
	default:
		return 0, false
	}
	return n, s.bitsOf(n) == bits
}

// bitsOf returns the bits of the scalar for a number.
func (s *generalScalar) bitsOf(n int64) uint64 {
	switch {
	case s.kind == scalarReciprocal:
		return ir.FloatBits(s.dt, 1/float64(n))
	case s.dt.IsFloat():
		return ir.FloatBits(s.dt, float64(n))
	}
	return uint64(n) << (64 - s.dt.Bits()) >> (64 - s.dt.Bits())
}
