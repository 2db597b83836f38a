package fusion

import (
	"errors"
	"fmt"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// View says where a tensor's elements are in its memory, in elements. The element at position i is
// at Offset + sum(Stride[d]*i[d]), mapped through Stages. A nil Stride means dense row-major.
type View struct {
	Offset int64
	Stride []int64
	Stages []runtime.Stage
}

// Layout is a plan bound to the shapes of one segment.
type Layout struct {
	// Launches holds one launch per step. The caller must still set Prog, Scalars and the buffers
	// of Args.
	Launches []runtime.Launch
	// Elems is the size, in elements, of the memory of each tensor that a step writes (dense
	// row-major); 0 for the others.
	Elems []int64
	// Views holds, for each alias of the plan, the place of its elements in the memory of its Of.
	Views []View
}

// IndexedViewError says that a plan reads an input at an index, and that the input is a view that
// strides alone cannot describe. With a dense copy of the input the plan has a layout.
type IndexedViewError struct{ Tensor int }

func (e *IndexedViewError) Error() string {
	return fmt.Sprintf("tensor %d is looked up by index and is a view that no strides describe", e.Tensor)
}

var errIndexedView = errors.New("an index into a view")

var layouters = sync.Pool{New: func() any { return new(layouter) }}

// Layout computes where every operand finds its elements. Parameter in describes the inputs,
// indexed by tensor; other entries are ignored. It fails if the segment's shapes do not fit the
// plan. It is safe for concurrent use.
func (p *Plan) Layout(seg *segment.Segment, in []View) (*Layout, error) {
	l := layouters.Get().(*layouter)
	defer layouters.Put(l)
	out := &Layout{
		Launches: make([]runtime.Launch, len(p.Steps)),
		Elems:    make([]int64, len(seg.Tensors)),
	}
	for i := range p.Steps {
		if err := l.step(&p.Steps[i], seg, in, &out.Launches[i], out.Elems); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	next := 0
	for _, c := range p.Chains {
		p.collapse(out.Launches, next, c.From)
		if next = c.From; p.chain(c, seg, out.Launches) {
			next = c.To // the tiles of a chain are collapsed when they are cut
		}
	}
	p.collapse(out.Launches, next, len(p.Steps))
	if len(p.Aliases) > 0 {
		out.Views = make([]View, len(p.Aliases))
	}
	for i := range p.Aliases {
		if err := l.alias(&p.Aliases[i], seg, in, &out.Views[i]); err != nil {
			return nil, fmt.Errorf("alias %d: %w", i, err)
		}
	}
	return out, nil
}

// dense is the layout of tensors that steps write.
var dense View

// memory is the layout of an operand's tensor.
func memory(seg *segment.Segment, in []View, t int) *View {
	if seg.Tensors[t].Def < 0 && t < len(in) {
		return &in[t]
	}
	return &dense
}

func (l *layouter) step(s *Step, seg *segment.Segment, in []View, out *runtime.Launch, elems []int64) error {
	if s.Domain >= len(seg.Tensors) {
		return errPath
	}
	shape := seg.Tensors[s.Domain].Shape
	l.open(shape, s.Axes, false)
	l.tracers = l.tracers[:0]
	for i := range s.Operands {
		o := &s.Operands[i]
		if o.Tensor >= len(seg.Tensors) {
			return errPath
		}
		l.tracers = append(l.tracers, tracer{})
		t := &l.tracers[i]
		l.start(t, shape)
		if err := l.walk(t, seg, o.Path); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
		if s.Kernel.Operands[i].Kind == codegen.Index && o.bounds() {
			t.close(t.linear())
			continue
		}
		if !t.stands(seg.Tensors[o.Tensor].Shape) {
			return fmt.Errorf("operand %d: %w: ends at %v, not %v", i, errPath, t.shape[:t.rank], seg.Tensors[o.Tensor].Shape)
		}
		if err := l.finish(t, memory(seg, in, o.Tensor)); err != nil {
			if errors.Is(err, errIndexedView) {
				return &IndexedViewError{Tensor: o.Tensor}
			}
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	for i, o := range s.Kernel.Operands {
		if o.Kind == codegen.Output {
			t := s.Operands[i].Tensor
			elems[t] = int64(seg.Tensors[t].Shape.Elems())
		}
	}
	if err := l.emit(out, s.Kernel); err != nil {
		return err
	}
	for i, o := range s.Kernel.Operands {
		if op := &s.Operands[i]; o.Kind == codegen.Output && op.pieced(seg) {
			out.Args[i].Piece = int32(op.Tensor) + 1
		}
	}
	return nil
}

// collapse merges dims of launches [from, to), which makes them fewer and longer.
func (p *Plan) collapse(ls []runtime.Launch, from, to int) {
	for i := from; i < to; i++ {
		ls[i].Collapse(p.Steps[i].outputs(nil))
	}
}

func (s *Step) outputs(list []int) []int {
	for i, o := range s.Kernel.Operands {
		if o.Kind == codegen.Output {
			list = append(list, i)
		}
	}
	return list
}

// walk follows a path hop by hop.
func (l *layouter) walk(t *tracer, seg *segment.Segment, path []Hop) error {
	for _, h := range path {
		if err := l.hop(t, seg, h); err != nil {
			return err
		}
	}
	return nil
}

// emit fills in the launch. Kept dims come first, then the reduced dims, each in order; so the
// reduced dims are iterated in row-major order. Rows of a single point get a reduced dim of size 1.
func (l *layouter) emit(out *runtime.Launch, k *codegen.Kernel) error {
	var order [runtime.MaxRank]int
	n := 0
	for _, reduced := range [2]bool{false, true} {
		for d := range l.domain.rank {
			if l.domain.reduced[d] == reduced {
				order[n] = d
				n++
			}
		}
		if !reduced {
			out.Kept = n
		}
	}
	out.Rank = n
	for i, d := range order[:n] {
		out.Dims[i] = l.domain.dims[d]
	}
	out.Args = make([]runtime.Access, len(l.tracers))
	for o := range l.tracers {
		t, a := &l.tracers[o], &out.Args[o]
		a.Offset, a.Stages = t.entry.off, t.stages
		a.IndexStride, a.IndexSize = t.indexStride, t.indexSize
		for i, d := range order[:n] {
			a.Stride[i] = t.entry.c[d]
			if !l.domain.reduced[d] || !k.Operands[o].Row {
				continue
			}
			if a.Stride[i] != 0 && out.Dims[i] > 1 {
				return fmt.Errorf("operand %d: %w: it moves within a row", o, errPath)
			}
			a.Stride[i] = 0
		}
	}
	if k.HasRows() && out.Kept == n {
		if n == runtime.MaxRank {
			return errPath
		}
		out.Dims[n] = 1
		out.Rank++
	}
	return nil
}
