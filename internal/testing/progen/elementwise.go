package progen

import "github.com/millrace-go/millrace/ir"

// elementwise picks operands for op by its row: first a mask if it has one, then a tensor of an
// allowed dtype, then tensors or scalars of the same.
func (g *generator) elementwise(op ir.Op, chain int) bool {
	info := op.Info()
	n := ir.Node{Op: op, NArgs: uint8(info.Arity)}
	operands := make([]ir.Operand, info.Arity)
	var at []int
	var shape ir.Shape
	take := func(i int, ok func(t *tensor) bool) bool {
		x := g.operand(chain, func(t *tensor) bool {
			if !ok(t) {
				return false
			}
			r, fit := ir.Broadcast(shape, t.typ.Shape)
			return fit && g.fits(r)
		})
		if x < 0 {
			return false
		}
		t := g.live[x]
		shape, _ = ir.Broadcast(shape, t.typ.Shape)
		n.Args[i] = ir.T(t.id)
		operands[i] = ir.Operand{DT: t.typ.DT, Shape: t.typ.Shape}
		at = append(at, x)
		return true
	}
	first := 0
	if info.Out == ir.OutLast {
		if !take(0, func(t *tensor) bool { return t.typ.DT == ir.Bool }) {
			return false
		}
		first = 1
	}
	// One of the value operands must be a tensor: it fixes the dtype.
	lead := first + g.intn(info.Arity-first)
	if !take(lead, func(t *tensor) bool { return info.In.Has(t.typ.DT) }) {
		return false
	}
	dt := operands[lead].DT
	if n.DT = dt; info.Out == ir.OutAttr || info.Out == ir.OutWidth {
		var ok bool
		if n.DT, ok = g.dtype(results(info.Out, dt)); !ok {
			return false
		}
	}
	scalars := len(g.p.Scalars)
	for i := first; i < info.Arity; i++ {
		if i == lead {
			continue
		}
		same := func(t *tensor) bool { return t.typ.DT == dt }
		if chance(g.source, 35) || !take(i, same) {
			n.Args[i] = g.scalar(dt)
			operands[i] = ir.Operand{DT: dt, Scalar: true}
		}
	}
	if g.append(n, operands, chain, at...) {
		return true
	}
	g.p.Scalars = g.p.Scalars[:scalars]
	return false
}

// results are the dtypes that a call may choose among.
func results(rule ir.OutRule, of ir.DType) ir.DTypeSet {
	if rule == ir.OutAttr {
		return ir.AllDTypes
	}
	var set ir.DTypeSet
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if ir.Numbers.Has(dt) && dt.Bits() == of.Bits() {
			set |= ir.SetOf(dt)
		}
	}
	return set
}
