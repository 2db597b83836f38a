package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// partial reduces in two rounds. The first cuts the reduced domain into segments and stores their
// results in scratch memory, next to each other. The second reduces these by another kernel. Either
// round may be cut again.
func (s *splitter) partial(k *codegen.Kernel, l *runtime.Launch, list []fold, skip []bool) error {
	if l.Rank == runtime.MaxRank {
		return s.errorf("a reduction of rank %d cannot be cut: the cut needs one more dim", l.Rank)
	}
	c := segmented{l: l, folds: list}
	c.dim, c.unit = segment(k, l)
	c.segs = (l.Dims[c.dim] + c.unit - 1) / c.unit
	if err := s.segments(k, &c, skip); err != nil {
		return err
	}
	for i, f := range list {
		if skip[f.operand] {
			continue
		}
		if err := s.foldScratch(f, &c, c.scratch[i]); err != nil {
			return err
		}
	}
	return nil
}

// segments runs the first round, which stores a result of each reduction for every segment.
func (s *splitter) segments(k *codegen.Kernel, c *segmented, skip []bool) error {
	l := c.l
	n := l.Dims[c.dim]
	for _, f := range c.folds {
		buf, err := s.scratch(points(l.Dims[:l.Kept]) * c.segs * s.elem(f.in.DT))
		if err != nil {
			return err
		}
		c.scratch = append(c.scratch, buf)
	}
	whole := n / c.unit
	if whole > 0 {
		if err := s.cut(k, c.launch(0, whole, c.unit), skip); err != nil {
			return err
		}
	}
	rest := n - whole*c.unit
	if rest == 0 {
		return nil
	}
	later := slices.Clone(skip)
	for _, st := range k.Stores {
		if whole > 0 && !k.Operands[st.Operand].Row && l.Args[st.Operand].Stride[c.dim] == 0 {
			later[st.Operand] = true // only position 0 stores
		}
	}
	return s.cut(k, c.launch(whole, 1, rest), later)
}

// segment chooses the dim to cut and the number of its positions in a segment.
func segment(k *codegen.Kernel, l *runtime.Launch) (dim int, unit int64) {
	want := maxSteps(k, l)
	for d := l.Kept; d < l.Rank; d++ {
		n, below := l.Dims[d], points(l.Dims[d+1:l.Rank])
		switch {
		case n == 1:
		case below >= want:
			return d, 1
		default:
			return d, min(want/below, (n+1)/2)
		}
	}
	return l.Rank - 1, 1
}

// segmented is a reduction cut along one of its dims.
type segmented struct {
	l       *runtime.Launch
	folds   []fold
	dim     int
	unit    int64 // positions of dim in a full segment
	segs    int64 // number of segments, the last of which may be short
	scratch []runtime.Buffer
}

// launch makes the launch for count segments from first on, of size positions each. The segment
// becomes the last kept dim, and reductions go to scratch memory.
func (s *segmented) launch(first, count, size int64) *runtime.Launch {
	l, d := s.l, s.dim
	c := *l
	c.Args = slices.Clone(l.Args)
	insert(&c, l.Kept)
	d++
	c.Kept++
	c.Dims[l.Kept], c.Dims[d] = count, size
	for i := range c.Args {
		a := &c.Args[i]
		a.Stride[l.Kept] = a.Stride[d] * s.unit
		a.Offset += first * a.Stride[l.Kept]
	}
	for i, f := range s.folds {
		a := s.access(s.scratch[i])
		a.Offset, a.Stride[l.Kept] = first, 1
		c.Args[f.operand] = a
	}
	return &c
}

// access addresses the first segment's result of a row in scratch memory; those of the other
// segments follow.
func (s *segmented) access(scratch runtime.Buffer) runtime.Access {
	a := runtime.Access{Buf: scratch}
	step := s.segs
	for j := s.l.Kept - 1; j >= 0; j-- {
		a.Stride[j] = step
		step *= s.l.Dims[j]
	}
	return a
}

// foldScratch reduces the segments' results into the reduction's output.
func (s *splitter) foldScratch(f fold, seg *segmented, scratch runtime.Buffer) error {
	op := f.in.Op
	if op == ir.Dot {
		op = ir.Sum
	}
	prog, k, err := s.build(foldKernel(op, f.in.DT))
	if err != nil {
		return err
	}
	l := seg.l
	c := runtime.Launch{Prog: prog, Rank: l.Kept + 1, Kept: l.Kept}
	copy(c.Dims[:], l.Dims[:l.Kept])
	c.Dims[l.Kept] = seg.segs
	in := seg.access(scratch)
	in.Stride[l.Kept] = 1
	c.Args = []runtime.Access{in, rowAccess(l.Args[f.operand], l.Kept)}
	return s.cut(k, &c, make([]bool, 2))
}

// rowAccess makes an access constant along the reduced dims.
func rowAccess(a runtime.Access, kept int) runtime.Access {
	clear(a.Stride[kept:])
	return a
}

// foldKernel is the kernel of foldScratch for values of dt.
func foldKernel(op ir.Op, dt ir.DType) *codegen.Kernel {
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt, Row: true}},
		Body:     []ir.Instr{instr(ir.Load, dt, 0), instr(op, dt, 0, 0)},
		Stores:   []codegen.Store{{Operand: 1, Value: 1}},
	}
}

func instr(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Instr {
	in := ir.Instr{Op: op, DT: dt, Imm: imm, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	return in
}

// insert makes room for a dim at position at.
func insert(l *runtime.Launch, at int) {
	copy(l.Dims[at+1:], l.Dims[at:l.Rank])
	for i := range l.Args {
		st := &l.Args[i].Stride
		copy(st[at+1:], st[at:l.Rank])
	}
	l.Rank++
}
