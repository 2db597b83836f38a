package fusion

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// body is the scalar program of a group while it is built. Each value is made once per (tensor,
// index map), and equal instructions are one.
type body struct {
	x    *explorer
	g    *group // values that g writes are never read from memory
	code []ir.Instr
	seen table[instrKey, ir.Ref]
	inst table[instance, ir.Ref]

	guards table[instance, ir.Ref] // for each map, the value that says where its element exists

	operands []bodyOperand
	inputs   int     // number of operands that are read from memory
	scalars  []int32 // the segment's slot of each kernel scalar
	weight   int     // upper bound of the lowered instructions
	nodes    nodeSet
	again    nodeSet // nodes computed at more than one index map
	inside   nodeSet // nodes computed for the operands of a contraction
	within   bool    // true while such an operand is being made
	err      error
}

// nodeSet is a set of a segment's nodes, one bit each.
type nodeSet []uint64

func newNodeSet(n int) nodeSet { return make(nodeSet, (n+63)/64) }
func (s nodeSet) add(n int32)  { s[n>>6] |= 1 << (n & 63) }
func (s nodeSet) join(o nodeSet) {
	for i := range s {
		s[i] |= o[i]
	}
}
func (s nodeSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}
func (s nodeSet) each(visit func(n int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(i<<6 | bits.TrailingZeros64(word))
		}
	}
}
func (s nodeSet) has(n int32) bool { return s != nil && s[n>>6]>>(n&63)&1 != 0 }

// with adds to a set that is nil while it is empty.
func (s nodeSet) with(n int32, words int) nodeSet {
	if s == nil {
		s = make(nodeSet, words)
	}
	s.add(n)
	return s
}

// instance is a value at an index map from the group's domain. A contraction's operands and the
// values after the contraction are computed at different times, so they are different instances.
type instance struct {
	tensor int32
	at     *indexMap
	within bool
}

type bodyOperand struct {
	kind   codegen.OperandKind
	tensor int32
	at     *indexMap
	row    bool // every point of a row accesses the same element
}

// reset makes b an empty body. It keeps b's memory, but not the sets, which costs refer to.
func (b *body) reset(x *explorer, g *group) {
	b.x, b.g, b.err, b.weight, b.inputs = x, g, nil, 0, 0
	b.code, b.operands, b.scalars = b.code[:0], b.operands[:0], b.scalars[:0]
	b.seen.empty()
	b.inst.empty()
	b.guards.empty()
	b.nodes, b.again, b.inside, b.within = newNodeSet(len(x.seg.Nodes)), nil, nil, false
}

// value makes tensor t's element at the point that m leads to.
func (b *body) value(t int32, m *indexMap) ir.Ref {
	key := instance{t, m, b.within}
	if r, ok := b.inst.get(key); ok {
		return r
	}
	if b.err == errTooLarge {
		return b.nothing(t)
	}
	if m.moved > maxMoved || b.x.farTooLarge(b.inst.count, b.inputs) || b.x.late() {
		b.err = errTooLarge
		return b.nothing(t)
	}
	b.x.values++
	r := b.make(t, m)
	b.inst.set(key, r)
	return r
}

// nothing is a placeholder for a value in a body with an error, which becomes no kernel.
func (b *body) nothing(t int32) ir.Ref {
	return b.emit(ir.Const, b.x.seg.Tensors[t].DT, 0)
}

// farTooLarge reports a body that is too large to become a kernel, so that making it can stop
// early. Where every stage of a program reads two places of the stage before, as sums by halves do,
// the number of values doubles with each stage, counted at each index map. The bound on values
// leaves room for values that the device limit does not count: views and loads. The bound on inputs
// is at least 32, more than any single op reads.
func (x *explorer) farTooLarge(values, inputs int) bool {
	return values > 4*cmp.Or(x.caps.MaxBody, 1<<12) || inputs > max(cmp.Or(x.caps.MaxOperands, 1<<8), 32)
}

// maxMoved is the largest number of data-movement nodes that a value is computed through. Each load
// checks at every point whether all of them have an element.
const maxMoved = 12

func (b *body) make(t int32, m *indexMap) ir.Ref {
	n := b.x.node(t)
	if n == nil || b.x.stored[t] && !b.owns(t) {
		return b.load(t, m)
	}
	if b.x.look[t] && m.gathers() >= 0 {
		b.err = errLookup
		return b.nothing(t)
	}
	def := b.x.seg.Tensors[t].Def
	if own, arg, ok := b.x.maps.inPiece(m, def); ok {
		if b.owns(t) { // an inner concatenation computes nothing, so only the written one is added
			b.nodes.add(def)
		}
		return b.value(n.Args[arg].ID, own)
	}
	if b.nodes.has(def) {
		b.again = b.again.with(def, len(b.nodes))
	}
	b.nodes.add(def)
	if b.within {
		b.inside = b.inside.with(def, len(b.nodes))
	}
	switch n.Op.Class() {
	case ir.ClassView:
		return b.value(n.Args[0].ID, b.x.maps.through(m, edge{node: def}))
	case ir.ClassCreate, ir.ClassElementwise:
		return b.apply(n, t, m)
	}
	switch {
	case n.Op.Class() == ir.ClassMove:
		return b.move(n, t, m)
	case n.Op.Class() == ir.ClassGather:
		return b.value(n.Args[0].ID, b.x.maps.gather(m, def))
	case !b.x.isRowOp(t):
		return b.value(n.Args[0].ID, m)
	}
	if n.Op == ir.Scatter {
		return b.scatter(n, t, m)
	}
	return b.rowOp(n, t, m)
}

func (b *body) owns(t int32) bool {
	return slices.ContainsFunc(b.g.roots, func(r root) bool { return r.tensor == t })
}

// rowOp makes the result of a row op. It is known only if the op's row is a row of the group.
func (b *body) rowOp(n *ir.Node, t int32, m *indexMap) ir.Ref {
	if b.within || !b.g.rowsOf(b.x, n) || m != b.x.maps.row(b.x.seg.Tensors[t].Def) {
		b.err = fmt.Errorf("%s: %w", n.Op, errOtherRows)
		return b.nothing(t)
	}
	var buf [2]ir.Ref
	args := buf[:0]
	b.within = n.Op == ir.Dot
	for _, a := range n.Args[:n.NArgs] {
		args = append(args, b.value(a.ID, b.x.maps.identity(b.g.domain)))
	}
	b.within = false
	imm := uint64(0)
	if n.Attr.Descending {
		imm = 1
	}
	return b.call(n.Op, n.DT, imm, args...)
}

// apply makes the value of an elementwise or creation op.
func (b *body) apply(n *ir.Node, t int32, m *indexMap) ir.Ref {
	var buf [5]ir.Ref
	args := buf[:0]
	if n.Op.Info().Indexed {
		slot := uint64(b.operand(codegen.Index, t, m))
		args = append(args, b.emit(ir.IndexLo, ir.Uint32, slot), b.emit(ir.IndexHi, ir.Uint32, slot))
	}
	for _, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			args = append(args, b.scalar(a.ID))
			continue
		}
		args = append(args, b.value(a.ID, b.x.maps.broadcast(m, b.x.class.of[a.ID])))
	}
	return b.call(n.Op, n.DT, 0, args...)
}

// load makes a load from memory, at an index if the map goes through a Gather.
func (b *body) load(t int32, m *indexMap) ir.Ref {
	dt, guard := b.x.seg.Tensors[t].DT, b.guard(m)
	at := m.gathers()
	if at < 0 {
		return b.emit(ir.Load, dt, uint64(b.operand(codegen.Input, t, m)), guard)
	}
	n := &b.x.seg.Nodes[m.steps[at].node]
	idx := n.Args[1].ID
	index := b.value(idx, b.x.maps.broadcast(m.prefix(at), b.x.class.of[idx]))
	slot := b.operand(codegen.Input, t, m)
	return b.emit(ir.LoadAt, dt, codegen.LoadAtImm(slot, n.Attr.Mode), index, guard)
}

// operand is the slot of an access; it adds the operand if it is new. Tensors of one class have
// their elements at the same positions, so index operands are compared by class.
func (b *body) operand(kind codegen.OperandKind, t int32, m *indexMap) int {
	row := !b.within && b.x.isRow(b.g, m)
	for i := range b.operands {
		o := &b.operands[i]
		if o.kind != kind || o.at != m || o.row != row {
			continue
		}
		if o.tensor == t || kind == codegen.Index && b.x.class.of[o.tensor] == b.x.class.of[t] {
			return i
		}
	}
	b.operands = append(b.operands, bodyOperand{kind, t, m, row})
	if kind == codegen.Input {
		b.inputs++
	}
	return len(b.operands) - 1
}

func (b *body) scalar(slot int32) ir.Ref {
	for i, s := range b.scalars {
		if s == slot {
			return b.emit(ir.Scalar, b.x.seg.Scalars[slot].DT, uint64(i))
		}
	}
	b.scalars = append(b.scalars, slot)
	return b.emit(ir.Scalar, b.x.seg.Scalars[slot].DT, uint64(len(b.scalars)-1))
}

// call makes the value of an op of the program. Where denormals are flushed, it emits more than one
// instruction.
func (b *body) call(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Ref {
	if !b.x.caps.Denormals.Computes(op) {
		return b.emit(op, dt, imm, args...)
	}
	return codegen.FlushInto(b.x.caps.Denormals, &b.code, instr(op, dt, imm, args...), b.add)
}

func instr(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Instr {
	in := ir.Instr{Op: op, DT: dt, Imm: imm, Args: [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}}
	copy(in.Args[:], args)
	return in
}

func (b *body) emit(op ir.Op, dt ir.DType, imm uint64, args ...ir.Ref) ir.Ref {
	return b.add(instr(op, dt, imm, args...))
}

func (b *body) add(in ir.Instr) ir.Ref {
	if r, ok := b.seen.get(instrKey(in)); ok {
		return r
	}
	b.code = append(b.code, in)
	r := ir.Ref(len(b.code) - 1)
	b.seen.set(instrKey(in), r)
	b.weight += b.x.weights.of(b.code, in)
	return r
}
