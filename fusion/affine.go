package fusion

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// affine is an index as a function of positions: off + sum(c[d]*i[d]), plus idx times the number
// that a Gather reads from its indices.
type affine struct {
	off int64
	c   [runtime.MaxRank]int64
	idx int64
}

func (a *affine) addScaled(b *affine, k int64, rank int) {
	a.off += k * b.off
	a.idx += k * b.idx
	for d := range rank {
		a.c[d] += k * b.c[d]
	}
}

// space is the dims that affine indices range over: a step's domain, or the digits into which a
// stage splits a linear position.
type space struct {
	rank    int
	dims    [runtime.MaxRank]int64
	reduced [runtime.MaxRank]bool
}

// tracer follows one path from the domain to an operand. For every dim of the current shape it
// holds the index along it.
type tracer struct {
	shape [ir.MaxRank]int64
	rank  int
	at    [ir.MaxRank]affine

	domain *space
	digits *space // the space of the last stage; nil while at ranges over the domain
	// entry is the position in the domain's dims: the final position, or the input of the first
	// stage.
	entry  affine
	stages []runtime.Stage

	// After a Gather: the distance of one number of the index, and how many numbers there are.
	indexStride, indexSize int64
}

var errPath = errors.New("a path of the plan does not fit the segment")

// start begins a path at a point of the domain itself.
func (l *layouter) start(t *tracer, shape ir.Shape) {
	t.domain, t.digits, t.stages, t.rank = &l.domain, nil, nil, len(shape)
	t.indexStride, t.indexSize = 0, 0
	for d, n := range shape {
		t.shape[d] = int64(n)
	}
	l.identity(t, shape)
}

func (t *tracer) space() *space {
	if t.digits != nil {
		return t.digits
	}
	return t.domain
}

// hop follows one hop of a path: it crosses one node or broadcasts.
func (l *layouter) hop(t *tracer, seg *segment.Segment, h Hop) error {
	if h.Node < 0 {
		if h.Arg < 0 || h.Arg >= len(seg.Tensors) {
			return errPath
		}
		return t.broadcast(seg.Tensors[h.Arg].Shape)
	}
	if h.Node >= len(seg.Nodes) {
		return errPath
	}
	n := &seg.Nodes[h.Node]
	if !crossable(n.Op, h.Up) {
		return fmt.Errorf("%w: an index cannot pass %s", errPath, n.Op)
	}
	if h.Arg < 0 || h.Arg >= int(n.NArgs) || n.Args[h.Arg].Scalar {
		return errPath
	}
	from, to := n.Shape, seg.Tensors[n.Args[h.Arg].ID].Shape
	if n.Op == ir.Scatter {
		from = seg.Tensors[n.Args[1].ID].Shape
	}
	if h.Up {
		from, to = to, from
	}
	if n.Op == ir.Reshape || n.Op.Class() == ir.ClassReduce && (!h.Up || !t.stands(from)) {
		return l.reshape(t, to) // also to a reduction's result from a shape that is reduced already
	}
	if !t.stands(from) {
		return fmt.Errorf("%w: at %v, not %v", errPath, t.shape[:t.rank], from)
	}
	if h.raises() && n.Op == ir.Concat {
		t.piece(n, to, seg.Tensors[n.Args[0].ID].Shape, h.Arg)
		return nil
	}
	switch n.Op {
	case ir.Expand:
		return t.broadcast(to)
	case ir.Permute:
		t.permute(n.Attr.Axes, h.Up)
	case ir.Slice:
		t.slice(n.Attr, to)
	case ir.Window:
		t.window(n.Attr, to)
	case ir.Pad, ir.Concat, ir.Assign:
		return l.move(t, n, to, seg.Tensors[n.Args[0].ID].Shape, h)
	case ir.Gather, ir.Scatter:
		return t.gather(n.Attr.Axes[0], to)
	default:
		t.reduce(n.Attr)
	}
	return nil
}

// crossable says whether a path may cross an op, in the given direction.
func crossable(op ir.Op, up bool) bool {
	switch op {
	case ir.Permute, ir.Reshape, ir.Concat:
		return true
	case ir.Expand, ir.Slice, ir.Window, ir.Pad, ir.Assign, ir.Gather, ir.Scatter:
		return !up
	}
	return op.Class() == ir.ClassReduce // down only if all reduced dims have size 1
}

func (t *tracer) stands(s ir.Shape) bool {
	if t.rank != len(s) {
		return false
	}
	for d, n := range s {
		if t.shape[d] != int64(n) {
			return false
		}
	}
	return true
}

// broadcast goes to a shape, aligned at the last dim, whose dims are 1 or equal.
func (t *tracer) broadcast(to ir.Shape) error {
	off := t.rank - len(to)
	if off < 0 {
		return fmt.Errorf("%w: %v does not broadcast to %v", errPath, to, t.shape[:t.rank])
	}
	for d, n := range to {
		switch {
		case int64(n) == t.shape[off+d]:
			t.at[d] = t.at[off+d]
		case n == 1:
			t.at[d] = affine{}
		default:
			return fmt.Errorf("%w: %v does not broadcast to %v", errPath, to, t.shape[:t.rank])
		}
		t.shape[d] = int64(n)
	}
	t.rank = len(to)
	return nil
}

func (t *tracer) permute(axes []int, up bool) {
	at, shape := t.at, t.shape
	for i, a := range axes {
		if up {
			t.at[i], t.shape[i] = at[a], shape[a]
		} else {
			t.at[a], t.shape[a] = at[i], shape[i]
		}
	}
}

func (t *tracer) slice(attr *ir.Attr, operand ir.Shape) {
	rank := t.space().rank
	for d, n := range operand {
		a := affine{off: int64(attr.Start[d])}
		a.addScaled(&t.at[d], int64(attr.Step[d]), rank)
		t.at[d], t.shape[d] = a, int64(n)
	}
}

// reduce goes from the operand of a reduction to its result.
func (t *tracer) reduce(attr *ir.Attr) {
	k := 0
	for d := range t.rank {
		if has(attr.Axes, d) {
			if attr.Keep {
				t.at[k], t.shape[k] = affine{}, 1
				k++
			}
			continue
		}
		t.at[k], t.shape[k] = t.at[d], t.shape[d]
		k++
	}
	t.rank = k
}

// linear is the row-major position in the current shape.
func (t *tracer) linear() affine {
	var a affine
	rank := t.space().rank
	n := int64(1)
	for d := t.rank - 1; d >= 0; d-- {
		if t.shape[d] > 1 {
			a.addScaled(&t.at[d], n, rank)
		}
		n *= t.shape[d]
	}
	return a
}

// restart opens a stage: the position so far becomes one number, which is split into the dims of
// shape.
func (t *tracer) restart(shape ir.Shape) error {
	if err := t.stage(); err != nil {
		return err
	}
	s := t.digits
	t.rank = len(shape)
	for d, n := range shape {
		t.shape[d] = int64(n)
		t.at[d] = affine{}
		if n > 1 {
			t.at[d].c[s.rank] = 1
			s.dims[s.rank] = int64(n)
			s.rank++
		}
	}
	return nil
}

// stage ends the path so far in one number and opens a space for the number's digits.
func (t *tracer) stage() error {
	p := t.linear()
	if p.idx != 0 {
		return fmt.Errorf("%w: an index passes a reshape", errPath)
	}
	t.close(p)
	t.digits = &space{}
	return nil
}

// close ends the current space with position p. A stage that only multiplies and adds an offset is
// not needed: the entry, or the stage before, does that.
func (t *tracer) close(p affine) {
	if t.digits == nil {
		t.entry = p
		return
	}
	r := t.digits.rank
	if k, ok := p.scale(t.digits); ok {
		if n := len(t.stages); n > 0 {
			last := &t.stages[n-1]
			last.Offset = p.off + k*last.Offset
			for d := range last.Stride {
				last.Stride[d] *= k
			}
			return
		}
		t.entry.off = p.off + k*t.entry.off
		for d := range t.entry.c {
			t.entry.c[d] *= k
		}
		return
	}
	t.stages = append(t.stages, runtime.Stage{
		Offset: p.off,
		Dims:   append([]int64(nil), t.digits.dims[:r]...),
		Stride: append([]int64(nil), p.c[:r]...),
	})
}

// scale finds k such that a, without its offset, is k times the row-major position in s.
func (a *affine) scale(s *space) (k int64, ok bool) {
	n := int64(1)
	for d := s.rank - 1; d >= 0; d-- {
		if n == 1 {
			k = a.c[d]
		}
		if a.c[d] != k*n {
			return 0, false
		}
		n *= s.dims[d]
	}
	return k, true
}
