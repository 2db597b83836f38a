package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// tileLeast is the size along m and n below which a contraction is a sum of products, by rows or by
// columns: tiles would be mostly empty.
const tileLeast = 12

// dotSteps is the number of elements along k that one dispatch adds. Each stretch of a tile costs
// loop iterations, and Mesa's software devices run at most 65,535 of them (see rowSteps).
const dotSteps = 1 << 14

// dotApart is the k from which a contraction of few tiles is cut along k, which gives more
// workgroups.
const (
	dotApart = 4096
	fewTiles = 16
)

// manyTiles keep a large GPU busy for several rounds.
const manyTiles = 512

func dotOf(k *codegen.Kernel) int {
	return slices.IndexFunc(k.Body, func(in ir.Instr) bool { return in.Op == ir.Dot })
}

// dimClass is the class of a kept dim of a contraction.
type dimClass uint8

const (
	batchDim dimClass = iota
	mDim              // the second operand is constant
	nDim              // the first operand is constant
)

// classify returns the class of every kept dim. If both operands are constant the result repeats,
// and any class is valid.
func classify(k *codegen.Kernel, l *runtime.Launch) []dimClass {
	inA, inB := shader.DotOperands(k)
	still := func(in []bool, d int) bool {
		for i := range l.Args {
			if in[i] && l.Args[i].Stride[d] != 0 {
				return false
			}
		}
		return true
	}
	list := make([]dimClass, l.Kept)
	for d := range list {
		switch {
		case still(inB, d):
			list[d] = mDim
		case still(inA, d):
			list[d] = nDim
		}
	}
	return list
}

// orderDot sorts the kept dims into the order batch, m, n, in place.
func orderDot(k *codegen.Kernel, l *runtime.Launch) {
	classes := classify(k, l)
	for i := 1; i < len(classes); i++ {
		for j := i; j > 0 && classes[j] < classes[j-1]; j-- {
			classes[j], classes[j-1] = classes[j-1], classes[j]
			l.Dims[j], l.Dims[j-1] = l.Dims[j-1], l.Dims[j]
			for a := range l.Args {
				st := &l.Args[a].Stride
				st[j], st[j-1] = st[j-1], st[j]
			}
		}
	}
}

// dotSizes returns the numbers of results along m and n, and of batches.
func dotSizes(k *codegen.Kernel, l *runtime.Launch) (batch, m, n int64) {
	sizes := [3]int64{1, 1, 1}
	for d, c := range classify(k, l) {
		sizes[c] *= l.Dims[d]
	}
	return sizes[batchDim], sizes[mDim], sizes[nDim]
}

// chooseTile returns the tile for an ordered launch. On a CPU, registers are the first-level cache,
// and workgroup memory is read lane by lane. The best tile then has as many results per invocation
// as products of two vectors of 16, in a loop, because its compiler takes seconds for unrolled
// text.
func chooseTile(k *codegen.Kernel, l *runtime.Launch, software bool) shader.Tile {
	t := shader.Tile{M: 64, N: 64, K: 16, RowsPer: 8, ColsPer: 8}
	switch batch, m, n := dotSizes(k, l); {
	case min(m, n) <= 32:
		t = shader.Tile{M: 32, N: 32, K: 16, RowsPer: 4, ColsPer: 4}
	case !software && batch*(m/128)*(n/128) >= manyTiles:
		t = shader.Tile{M: 128, N: 128, K: 16, RowsPer: 8, ColsPer: 8}
	case !software && batch*((m+63)/64)*((n+63)/64) < manyTiles:
		t.RowsPer, t.ColsPer = 4, 4 // four times as many invocations
	case software:
		t = shader.Tile{M: 64, N: 64, K: 8, RowsPer: 16, ColsPer: 16, Looped: true}
		if m > 64 {
			t.M = 128
		}
		if n > 64 {
			t.N = 128
		}
	}
	for _, c := range classify(k, l) {
		switch c {
		case mDim:
			t.MDims++
		case nDim:
			t.NDims++
		}
	}
	inA, inB := shader.DotOperands(k)
	t.AlongA, t.AlongB = along(k, l, inA), along(k, l, inB)
	return t
}

// along reports whether most operands of a side move by one element along k.
func along(k *codegen.Kernel, l *runtime.Launch, side []bool) bool {
	votes := 0
	for i, in := range side {
		if !in || k.Operands[i].Kind != codegen.Input {
			continue
		}
		if l.Args[i].Stride[l.Rank-1] == 1 {
			votes++
		} else {
			votes--
		}
	}
	return votes > 0
}

// contract runs a launch with a contraction.
func (s *splitter) contract(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	batch, m, n := dotSizes(k, l)
	if min(m, n) < tileLeast {
		return s.rebuilt(products(k), l, skip)
	}
	size := reducedSize(l)
	tiles := batch * ((m + 31) / 32) * ((n + 31) / 32)
	if size > dotSteps || size >= dotApart && tiles < fewTiles {
		if folds(k) == nil {
			return s.epilogue(k, l, skip)
		}
		return s.partial(k, l, folds(k), skip)
	}
	return s.cut(k, l, skip)
}

// rebuilt runs a launch with another kernel for the same operands.
func (s *splitter) rebuilt(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	prog, ready, err := s.build(k)
	if err != nil {
		return err
	}
	c := *l
	c.Prog, c.Args = prog, slices.Clone(l.Args)
	return s.cut(ready, &c, skip)
}

// products replaces a kernel's contraction by a sum of products.
func products(k *codegen.Kernel) *codegen.Kernel {
	c := &codegen.Kernel{Operands: k.Operands, Scalars: k.Scalars, Stores: slices.Clone(k.Stores)}
	at := make([]ir.Ref, len(k.Body))
	for i, in := range k.Body {
		for j, a := range in.Args {
			if a != ir.None {
				in.Args[j] = at[a]
			}
		}
		if in.Op == ir.Dot {
			c.Body = append(c.Body, instr(ir.Mul, in.DT, 0, in.Args[0], in.Args[1]))
			in = instr(ir.Sum, in.DT, 0, ir.Ref(len(c.Body)-1))
		}
		at[i] = ir.Ref(len(c.Body))
		c.Body = append(c.Body, in)
	}
	for i := range c.Stores {
		c.Stores[i].Value = at[c.Stores[i].Value]
	}
	return c
}

// epilogue runs a contraction and the ops on its result one after the other; the contraction can
// then be cut along k.
func (s *splitter) epilogue(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	dot := dotOf(k)
	temp, err := s.temp(l, k.Body[dot].DT, true)
	if err != nil {
		return err
	}
	with := *k
	with.Operands = append(slices.Clone(k.Operands), codegen.Operand{Kind: codegen.Output, DT: k.Body[dot].DT, Row: true})
	c := *l
	c.Args, skip = append(slices.Clone(l.Args), temp), append(slices.Clone(skip), false)
	store := codegen.Store{Operand: len(k.Operands), Value: ir.Ref(dot)}
	if err := s.sub(&with, []codegen.Store{store}, nil, true, &c, skip); err != nil {
		return err
	}
	with.Operands[len(k.Operands)].Kind = codegen.Input
	with.Body = slices.Clone(k.Body)
	with.Body[dot] = instr(ir.Load, k.Body[dot].DT, uint64(len(k.Operands)))
	c.Rank = c.Kept
	for i, a := range c.Args {
		c.Args[i] = rowAccess(a, l.Kept)
	}
	return s.sub(&with, k.Stores, nil, false, &c, skip)
}
