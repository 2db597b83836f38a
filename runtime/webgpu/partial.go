package webgpu

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Steps that one output of a reduction takes in one dispatch: enough to
// outweigh a workgroup's fold, few enough that a lone reduction spreads over
// the device, and far below the 65,535 loop iterations per invocation after
// which Mesa's software devices stop without an error.
const (
	rowSteps = 16384 // shared by a workgroup
	colSteps = 1024  // of a single invocation; also bounds its rounding error
)

func reducedSize(l *runtime.Launch) int64 { return points(l.Dims[l.Kept:l.Rank]) }

func maxSteps(k *codegen.Kernel, l *runtime.Launch) int64 {
	if byRows(k, l) {
		return rowSteps
	}
	return colSteps
}

// byRows reports that the reduced points of one output lie next to each other
// in most inputs, or that outputs are few: then a workgroup shares an output's
// points. Otherwise neighbouring invocations take neighbouring outputs.
func byRows(k *codegen.Kernel, l *runtime.Launch) bool {
	reduced := reducedSize(l)
	if reduced < 32 {
		return false
	}
	if points(l.Dims[:l.Kept]) < 64 {
		return true
	}
	along, across := 0, 0
	for i, o := range k.Operands {
		if o.Kind != codegen.Input {
			continue
		}
		switch {
		case l.Args[i].Stride[l.Rank-1] == 1:
			along++
		case l.Kept > 0 && l.Args[i].Stride[l.Kept-1] == 1:
			across++
		}
	}
	return along >= across
}

// partial reduces in two rounds: the reduced domain is cut into segments whose
// results go to scratch memory, segment by segment next to each other, and
// those are reduced by a kernel of its own. Either round may be cut again.
func (s *splitter) partial(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	if l.Rank == runtime.MaxRank {
		return fmt.Errorf("webgpu: a reduction over %d dims cannot be cut", l.Rank)
	}
	c := segmented{k: k, l: l}
	c.dim, c.unit = segment(k, l)
	n := l.Dims[c.dim]
	c.segs = (n + c.unit - 1) / c.unit
	outs := points(l.Dims[:l.Kept])
	for range k.Reduces {
		buf, err := s.scratch(outs * c.segs * elemSize)
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
	if rest := n - whole*c.unit; rest > 0 {
		later := slices.Clone(skip)
		for _, st := range k.Stores {
			if whole > 0 && l.Args[st.Operand].Stride[c.dim] == 0 {
				later[st.Operand] = true // only position 0 stores
			}
		}
		if err := s.cut(k, c.launch(whole, 1, rest), later); err != nil {
			return err
		}
	}
	for i, r := range k.Reduces {
		if skip[r.Operand] {
			continue
		}
		if err := s.foldScratch(k, l, r, c.scratch[i], c.segs); err != nil {
			return err
		}
	}
	return nil
}

// segment chooses the dim to cut and how many of its positions make a segment.
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
	k       *codegen.Kernel
	l       *runtime.Launch
	dim     int
	unit    int64 // positions of dim in a whole segment
	segs    int64 // segments, the last of which may be short
	scratch []runtime.Buffer
}

// launch is the part of count segments from segment first on, of size
// positions each: the segment becomes the last kept dim, and reductions go to
// scratch memory.
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
	for i, r := range s.k.Reduces {
		a := runtime.Access{Buf: s.scratch[i], Offset: first}
		step := s.segs
		a.Stride[l.Kept] = 1
		for j := l.Kept - 1; j >= 0; j-- {
			a.Stride[j] = step
			step *= l.Dims[j]
		}
		c.Args[r.Operand] = a
	}
	return &c
}

// foldScratch reduces the segments' results into the reduction's output.
func (s *splitter) foldScratch(k *codegen.Kernel, l *runtime.Launch, r codegen.Reduce, scratch runtime.Buffer, segs int64) error {
	prog, fold, err := s.fold(r, k)
	if err != nil {
		return err
	}
	c := runtime.Launch{Prog: prog, Rank: l.Kept + 1, Kept: l.Kept}
	copy(c.Dims[:], l.Dims[:l.Kept])
	c.Dims[l.Kept] = segs
	in := runtime.Access{Buf: scratch}
	in.Stride[l.Kept] = 1
	step := segs
	for j := l.Kept - 1; j >= 0; j-- {
		in.Stride[j] = step
		step *= l.Dims[j]
	}
	out := l.Args[r.Operand]
	for j := l.Kept; j < runtime.MaxRank; j++ {
		out.Stride[j] = 0
	}
	c.Args = []runtime.Access{in, out}
	return s.cut(fold, &c, make([]bool, 2))
}

// foldKernel is the kernel of foldScratch for values of dt.
func foldKernel(op ir.Op, dt ir.DType) *codegen.Kernel {
	none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     []ir.Instr{{Op: ir.Load, DT: dt, Args: none}},
		Reduces:  []codegen.Reduce{{Op: op, Value: 0, Operand: 1}},
	}
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
