package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A scatter consists of several dispatches, one after another. First its indices are checked, if
// one out of range would be a fault. Then the operand is copied if the output is other memory. Then
// the rows are processed, each by one invocation and in order, in parts if a row is long. The last
// dispatches do nothing after a reported fault; an operand that is updated in place is therefore
// not changed by a failing launch.

// scattering is the state of a scatter's pieces.
type scattering struct {
	checks bool // the piece only checks indices
	slots  *int // the first of the scatter's words of the faults binding; -1 before they are assigned
}

// scattersInto reports whether a scatter's indices address the operand's rows.
func scattersInto(k *codegen.Kernel, operand int) bool {
	at := k.Scatter()
	return at != ir.None && (operand == k.Stores[0].Operand || operand == int(uint32(k.Body[at].Imm)))
}

// firstReduced returns the outermost reduced dim that can be cut: halves along any other would not
// follow the row's order.
func firstReduced(l *runtime.Launch) int {
	for d := l.Kept; d < l.Rank; d++ {
		if l.Dims[d] > 1 {
			return d
		}
	}
	return l.Rank - 1
}

// scatter runs a launch of a kernel with a scatter.
func (s *splitter) scatter(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	in := k.Body[k.Scatter()]
	from, to := int(uint32(in.Imm)), k.Stores[0].Operand
	x, out := l.Args[from], l.Args[to]
	if len(x.Stages)+len(out.Stages) > 0 || x.IndexSize != out.IndexSize {
		return s.errorf("a scatter of index size %d into a result of index size %d, or through stages, is not supported", x.IndexSize, out.IndexSize)
	}
	defer func(was scattering) { s.scattering = was }(s.scattering)
	s.scattering = scattering{}
	none := reducedSize(l) == 0
	if shader.MayFault(k) && !none {
		slots := -1
		s.scattering = scattering{checks: true, slots: &slots}
		if err := s.check(k, l, from, to); err != nil {
			return err
		}
	}
	if out.IndexSize == 0 {
		return nil
	}
	if x.Buf != out.Buf {
		if err := s.copyRows(l, k.Operands[to].DT, x, out); err != nil {
			return err
		}
	}
	if none {
		return nil
	}
	s.checks = false
	part := out.IndexSize
	most := s.rowElems(k.Operands[to].DT)
	if step := max(out.IndexStride, -out.IndexStride); step*(part-1) >= most {
		part = (most-1)/step + 1
	}
	if part < out.IndexSize {
		return s.axisParts(k, l, skip, part)
	}
	c := *l
	c.Args = slices.Clone(l.Args)
	c.Args[from] = out
	return s.cut(k, &c, skip)
}

// rowElems is the number of elements of dt that fit in a binding at any alignment.
func (s *splitter) rowElems(dt ir.DType) int64 { return (s.binding - s.align - 16) / s.elem(dt) }

// check checks all indices of a scatter, without its target.
func (s *splitter) check(k *codegen.Kernel, l *runtime.Launch, from, to int) error {
	buf, err := s.scratch(16)
	if err != nil {
		return err
	}
	c := *l
	c.Kept = c.Rank
	c.Args = slices.Clone(l.Args)
	c.Args[from] = runtime.Access{Buf: buf, IndexSize: l.Args[to].IndexSize}
	c.Args[to] = c.Args[from]
	return s.cut(k, &c, make([]bool, len(c.Args)))
}

// copyRows copies the operand to the output, over the kept dims and the axis, the output's
// innermost dim last.
func (s *splitter) copyRows(l *runtime.Launch, dt ir.DType, x, out runtime.Access) error {
	k := &codegen.Kernel{
		Operands: []codegen.Operand{{DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     []ir.Instr{instr(ir.Load, dt, 0)},
		Stores:   []codegen.Store{{Operand: 1, Value: 0}},
	}
	prog, ready, err := s.build(k)
	if err != nil {
		return err
	}
	dims := slices.Clone(l.Dims[:l.Kept+1])
	dims[l.Kept] = out.IndexSize
	x.Stride[l.Kept], out.Stride[l.Kept] = x.IndexStride, out.IndexStride
	order := make([]int, len(dims))
	for d := range order {
		order[d] = d
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(out.Stride[b] - out.Stride[a]) })
	c := runtime.Launch{Prog: prog, Rank: len(dims), Kept: len(dims), Args: []runtime.Access{
		{Buf: x.Buf, Offset: x.Offset}, {Buf: out.Buf, Offset: out.Offset}}}
	for i, d := range order {
		c.Dims[i], c.Args[0].Stride[i], c.Args[1].Stride[i] = dims[d], x.Stride[d], out.Stride[d]
	}
	was := s.scattering
	s.scattering = scattering{}
	defer func() { s.scattering = was }()
	return s.whole(ready, &c, make([]bool, 2))
}

// axisParts scatters into rows that exceed a binding, one part of the axis after another: each part
// reads all indices, and uses those that point into it.
func (s *splitter) axisParts(k *codegen.Kernel, l *runtime.Launch, skip []bool, part int64) error {
	sub := partKernel(k)
	prog, ready, err := s.build(sub)
	if err != nil {
		return err
	}
	at := k.Body[k.Scatter()]
	from, to := int(uint32(at.Imm)), k.Stores[0].Operand
	out := l.Args[to]
	for lo := int64(0); lo < out.IndexSize; lo += part {
		c := *l
		c.Prog = prog
		c.Args = slices.Clone(l.Args)
		c.Args[to].Offset += lo * out.IndexStride
		c.Args[to].IndexSize = min(part, out.IndexSize-lo)
		c.Args[from] = c.Args[to]
		c.Scalars = append(slices.Clone(l.Scalars), uint64(uint32(lo)), uint64(uint32(out.IndexSize-1)))
		if err := s.cut(ready, &c, slices.Clone(skip)); err != nil {
			return err
		}
	}
	return nil
}

// partKernel makes a kernel that scatters into a part of its axis. It has two more scalars: the
// start of the part and the last element of the whole axis. Faulty indices have been reported
// before it runs, and it drops indices outside of the part.
func partKernel(k *codegen.Kernel) *codegen.Kernel {
	at := k.Scatter()
	in := k.Body[at]
	sub := &codegen.Kernel{Operands: k.Operands, Scalars: append(slices.Clone(k.Scalars), ir.Int32, ir.Int32), Body: slices.Clone(k.Body[:at])}
	add := func(x ir.Instr) ir.Ref {
		sub.Body = append(sub.Body, x)
		return ir.Ref(len(sub.Body) - 1)
	}
	mode, index := codegen.ModeOf(in), in.Args[0]
	least := uint64(1<<32 - 1) // -1, which keeps the difference within an int32
	if mode == ir.IndexClamp {
		least = 0
		index = add(instr(ir.Minimum, ir.Int32, 0, index, add(instr(ir.Scalar, ir.Int32, uint64(len(k.Scalars)+1)))))
		mode = ir.IndexDrop
	}
	index = add(instr(ir.Maximum, ir.Int32, 0, index, add(instr(ir.Const, ir.Int32, least))))
	index = add(instr(ir.Sub, ir.Int32, 0, index, add(instr(ir.Scalar, ir.Int32, uint64(len(k.Scalars))))))
	value := add(instr(ir.Scatter, in.DT, codegen.ScatterImm(int(uint32(in.Imm)), mode, codegen.CombineOf(in)), index, in.Args[1]))
	sub.Stores = []codegen.Store{{Operand: k.Stores[0].Operand, Value: value}}
	return sub
}
