package gpurun

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// positions is partial for reductions that find a position. A segment stores the greatest key and
// its position in the segment. A kernel then finds the first segment with the greatest key.
func (s *splitter) positions(k *codegen.Kernel, l *runtime.Launch, list []fold, skip []bool) error {
	keyed := &codegen.Kernel{Operands: slices.Clone(k.Operands), Scalars: k.Scalars, Body: slices.Clone(k.Body)}
	keyed.Stores = slices.Clone(k.Stores)
	b := body{keyed}
	c := segmented{l: l}
	c.dim, c.unit = segment(k, l)
	if l.Rank == runtime.MaxRank {
		return s.errorf("a reduction of rank %d cannot be cut: the cut needs one more dim", l.Rank)
	}
	c.segs = (l.Dims[c.dim] + c.unit - 1) / c.unit
	wide := *l
	wide.Args = slices.Clone(l.Args)
	skip = slices.Clone(skip)
	type found struct {
		fold
		best, at int // operands of keyed
	}
	var places []found
	for _, f := range list {
		if !f.in.Op.Info().Position {
			continue
		}
		key := b.sortKey(f.in)
		best := len(keyed.Operands)
		keyed.Operands[f.operand].DT = ir.Int32
		keyed.Operands = append(keyed.Operands, codegen.Operand{Kind: codegen.Output, DT: ir.Int32, Row: true})
		wide.Args, skip = append(wide.Args, runtime.Access{}), append(skip, skip[f.operand])
		at := b.emit(ir.ArgMax, ir.Int32, 0, key)
		for i := range keyed.Stores {
			if keyed.Stores[i].Operand == f.operand {
				keyed.Stores[i].Value = at
			}
		}
		keyed.Stores = append(keyed.Stores, codegen.Store{Operand: best, Value: b.emit(ir.Max, ir.Int32, 0, key)})
		places = append(places, found{f, best, f.operand})
	}
	prog, ready, err := s.build(keyed)
	if err != nil {
		return err
	}
	wide.Prog = prog
	c.l, c.folds = &wide, folds(ready)
	if err := s.segments(ready, &c, skip); err != nil {
		return err
	}
	scratch := map[int]runtime.Buffer{}
	for i, f := range c.folds {
		scratch[f.operand] = c.scratch[i]
	}
	for _, f := range list {
		if !f.in.Op.Info().Position && !skip[f.operand] {
			if err := s.foldScratch(f, &c, scratch[f.operand]); err != nil {
				return err
			}
		}
	}
	for _, f := range places {
		if skip[f.operand] {
			continue
		}
		if err := s.findScratch(l, f.fold, &c, scratch[f.best], scratch[f.at]); err != nil {
			return err
		}
	}
	return nil
}

// findScratch stores the position of the first of the greatest keys, given each segment's greatest
// key and its position.
func (s *splitter) findScratch(l *runtime.Launch, f fold, seg *segmented, best, at runtime.Buffer) error {
	prog, k, err := s.build(findKernel(f.in.DT))
	if err != nil {
		return err
	}
	c := runtime.Launch{Prog: prog, Rank: l.Kept + 1, Kept: l.Kept}
	copy(c.Dims[:], l.Dims[:l.Kept])
	c.Dims[l.Kept] = seg.segs
	in := seg.access(best)
	in.Stride[l.Kept] = 1
	other := in
	other.Buf = at
	var start runtime.Access
	start.Stride[l.Kept] = seg.unit * points(l.Dims[seg.dim+1:l.Rank])
	c.Args = []runtime.Access{in, other, start, rowAccess(l.Args[f.operand], l.Kept)}
	return s.cut(k, &c, make([]bool, 4))
}

// findKernel is the kernel of findScratch, for positions of dt.
func findKernel(dt ir.DType) *codegen.Kernel {
	k := &codegen.Kernel{Operands: []codegen.Operand{
		{Kind: codegen.Input, DT: ir.Int32}, {Kind: codegen.Input, DT: ir.Int32}, {Kind: codegen.Index}, {Kind: codegen.Output, DT: dt, Row: true},
	}}
	b := body{k}
	key := b.emit(ir.Load, ir.Int32, 0)
	best := b.emit(ir.Max, ir.Int32, 0, key)
	start := b.emit(ir.Convert, ir.Int32, 0, b.emit(ir.IndexLo, ir.Uint32, 2))
	at := b.emit(ir.Add, ir.Int32, 0, b.emit(ir.Load, ir.Int32, 1), start)
	none := b.emit(ir.Const, ir.Int32, math.MaxInt32)
	of := b.emit(ir.Where, ir.Int32, 0, b.emit(ir.Eq, ir.Bool, 0, key, best), at, none)
	v := b.emit(ir.Min, ir.Int32, 0, of)
	if dt != ir.Int32 {
		v = b.emit(ir.Convert, dt, 0, v)
	}
	k.Stores = []codegen.Store{{Operand: 3, Value: v}}
	return k
}

// sortKey emits an int32 key. The greatest key belongs to the element whose position is needed: see
// ir.SortKey.
func (b body) sortKey(in ir.Instr) ir.Ref {
	x := in.Args[0]
	dt := b.k.Body[x].DT
	constant := func(v uint64) ir.Ref { return b.emit(ir.Const, ir.Int32, v) }
	key := x
	switch {
	case dt == ir.Float32:
		key = b.emit(ir.Bitcast, ir.Int32, 0, x)
		sign := b.emit(ir.ShrRaw, ir.Int32, 0, key, constant(31))
		key = b.emit(ir.Xor, ir.Int32, 0, key, b.emit(ir.And, ir.Int32, 0, sign, constant(math.MaxInt32)))
	case dt == ir.Uint32:
		key = b.emit(ir.Xor, ir.Int32, 0, b.emit(ir.Bitcast, ir.Int32, 0, x), constant(1<<31))
	case dt != ir.Int32:
		key = b.emit(ir.Convert, ir.Int32, 0, x)
	}
	if in.Op == ir.ArgMin {
		key = b.emit(ir.Not, ir.Int32, 0, key)
	}
	if dt == ir.Float32 {
		key = b.emit(ir.Where, ir.Int32, 0, b.emit(ir.Ne, ir.Bool, 0, x, x), constant(math.MaxInt32), key)
	}
	return key
}
