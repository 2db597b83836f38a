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

// General is a tape whose arguments have axes of any size. What else has a size in it
// follows from those: by polynomials with whole coefficients, which a few trials tell.
type General struct {
	tape   *Tape
	axes   [][]int // of each argument the number of each axis; -1 where the size is fixed
	free   []int   // the axes that may have another size, of those with a number
	polys  []poly.Poly
	forms  [][]int               // shapes, as polys
	inputs []int                 // forms of the arguments
	memory map[int]generalMemory // by constants of the tape
	nodes  []generalNode
	parts  []generalPart
}

// generalPart is a segment of the tape.
type generalPart struct {
	first   int                  // number of its first node
	from    map[int32]tapeSource // of its operands
	scalars []partScalar         // that depend on sizes
}

type partScalar struct {
	at int32 // among the segment's
	generalScalar
}

// generalMemory is how memory from outside lies: a view of it may have sizes.
type generalMemory struct {
	dt           ir.DType
	form, offset int
	stride       []int // polys; nil where the tape's own view is right
}

// generalNode is an op of a General.
type generalNode struct {
	form        int
	start, step []int // polys
}

// generalScalar is a run-time scalar: bits, a number that a poly gives, or 1 over that.
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

// mostAxes is how many axes of other sizes a General has at most: with each there are
// more polynomials to tell from one another.
const mostAxes = 6

// checks is how many trials there are beyond those that polynomials need.
const checks = 4

var errNotGeneral = errors.New("its sizes do not follow from those of its arguments")

// Generalise finds out how the sizes in a tape follow from those of its arguments'
// axes, which have numbers, or -1 where they stay what they are. sizes are those that
// the tape has. Those that are 0 or 1 stay so, too: what they are decides which ops a
// program does. f does on a trial what the tape does. The General is one of the tape's
// users; it is nil where the ops depend on more than that.
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

// Settle has everything that is queued on the default stream, such as weights that were
// just made, be in memory: a tape of what is computed with it then says where it is.
func (d *Device) Settle() {
	d.def.mu.Lock()
	defer d.def.unlock()
	d.def.flush(segment.End{Reason: segment.ReasonSync, ID: -1, All: true}, true)
}

// Release ends the General's hold on its tape. It is called once.
func (g *General) Release() { g.tape.Release() }

// find makes trials at other sizes and fits polynomials to what they tell.
func (g *General) find(sizes []int, f func(*Trial)) bool {
	for i, x := range g.tape.inputs {
		if x.view != nil && slices.ContainsFunc(g.axes[i], func(axis int) bool { return axis >= 0 && sizes[axis] > 1 }) {
			return false // its strides depend on sizes
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

// degreeOf is that of the polynomials in so many axes: each has more coefficients than
// the one before, and as many trials.
func degreeOf(axes int) int {
	if axes > 3 {
		return 2
	}
	return 3
}

// trials are what f does at these sizes of the free axes: nil if it fails at one, not
// alike if it does something else than the tape does.
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

// trialRanges are of what sizes trials are. Where one fails they are made without the
// largest: a table that a function takes as many rows of as there are has some hundreds.
var trialRanges = [][2]int{{2, 9}, {10, 64}, {65, 300}, {301, 5000}}

// trialSizes are sizes of so many axes for n trials, in some of the ranges: small and
// large, odd and even, so that what they have in common is not that they are alike. The
// first are those that are most likely to be too large.
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

// sizes are those of all axes where the free ones have these.
func (g *General) sizes(all, free []int) []int {
	all = slices.Clone(all)
	for i, axis := range g.free {
		all[axis] = free[i]
	}
	return all
}

// try runs a trial.
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

// fitting is what is being made of traces.
type fitting struct {
	*poly.Fitter
	g            *General
	known, forms map[string]int
}

// poly is the number of the polynomial that has these values.
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

// polys are those of numbers that each trace has.
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

// form is the number of the shape with these sizes.
func (x *fitting) form(sizes []int) int {
	key := fmt.Sprint(sizes)
	n, ok := x.forms[key]
	if !ok {
		n = len(x.g.forms)
		x.g.forms, x.forms[key] = append(x.g.forms, sizes), n
	}
	return n
}

// fit finds a polynomial for each number of the traces, which are of the free axes'
// sizes at points.
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

// fitParts finds what the scalars of each segment are.
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

// scalar finds what a scalar is that has these bits.
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

// number is what a scalar of this kind with such bits is of.
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

// bitsOf is the scalar for a number.
func (s *generalScalar) bitsOf(n int64) uint64 {
	switch {
	case s.kind == scalarReciprocal:
		return ir.FloatBits(s.dt, 1/float64(n))
	case s.dt.IsFloat():
		return ir.FloatBits(s.dt, float64(n))
	}
	return uint64(n) << (64 - s.dt.Bits()) >> (64 - s.dt.Bits())
}
