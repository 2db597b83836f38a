package ir

import (
	"slices"
	"sync"
)

// Flushing says for which operands of an op, and whether for its result, a [Flush] is needed to
// give the meaning of [Denormals]. The others are handled by the op's expansion, in primitives that
// flush.
type Flushing struct {
	operands uint8
	Result   bool
}

// Operand reports an operand that must be flushed.
func (f Flushing) Operand(i int) bool { return f.operands>>i&1 != 0 }

var flushings sync.Map // expansionKey → Flushing

// Needs returns the flushes that an op with these dtypes needs. argDT does not include the position
// of an Indexed op.
func (d Denormals) Needs(op Op, dt DType, argDT []DType) Flushing {
	if !d.Computes(op) || op == Dot {
		return Flushing{}
	}
	if op.Info().RowOp {
		// An element that is alone in its row may pass without arithmetic, and extremes are chosen.
		// Flushing keeps the order, so it may come last.
		return Flushing{Result: d.Flushes(dt)}
	}
	key := expansionKey{op: op, dt: dt, nargs: uint8(len(argDT))}
	copy(key.args[:], argDT)
	if f, ok := flushings.Load(key); ok {
		return f.(Flushing)
	}
	f, _ := flushings.LoadOrStore(key, d.needs(op, dt, argDT))
	return f.(Flushing)
}

func (d Denormals) needs(op Op, dt DType, argDT []DType) Flushing {
	var f Flushing
	if op == Cast && dt.wide() != argDT[0].wide() {
		// Bits are moved and rounded. A number that was normal before rounding stays normal.
		if !argDT[0].wide() {
			f.operands = uint8(boolBit(d.Flushes(argDT[0])))
			return f
		}
		if dt.IsFloat() {
			f.Result = d.Flushes(dt)
			return f
		}
	}
	// An op on a wide dtype is the op on the dtype that computes it, which has its denormals.
	computed := func(dt DType) DType {
		if dt.wide() {
			return dt.Compute()
		}
		return dt
	}
	args := make([]DType, len(argDT))
	for i, a := range argDT {
		args[i] = computed(a)
	}
	p := Expansion(op, computed(dt), args)
	first := len(p.Params) - len(args)
	for i, a := range args {
		if d.Flushes(a) && p.moves(uint64(first+i)) {
			f.operands |= 1 << i
		}
	}
	f.Result = d.Flushes(dt) && !d.clean(p)
	return f
}

// moves reports a parameter with other uses than arithmetic, which treats denormals as zeros.
func (p *Prog) moves(param uint64) bool {
	for i, in := range p.Code {
		if in.Op != Param || in.Imm != param {
			continue
		}
		for _, r := range p.Results {
			if int(r) == i {
				return true
			}
		}
		for _, user := range p.Code {
			for _, a := range user.Args {
				if int(a) == i && !arithmetic(user.Op) {
					return true
				}
			}
		}
	}
	return false
}

// arithmetic reports a primitive that flushes its operands of a float type.
func arithmetic(op Op) bool {
	switch op {
	case Eq, Ne, Lt, Le, Gt, Ge:
		return true
	}
	return gives(op)
}

// gives reports a primitive whose result of a float type is never denormal.
func gives(op Op) bool {
	switch op {
	case Add, Sub, Mul, FDiv, FMA, Sqrt, Floor, Ceil, Round, Trunc, Convert:
		return true
	}
	return false
}

// Knowledge about a value. noDenormal: a float that is not denormal, or an integer with the bits of
// such a float. signOnly: an integer with no bits other than a sign.
const (
	anything = iota
	noDenormal
	signOnly
)

// clean reports that a program's results are not denormal if its parameters are not.
func (d Denormals) clean(p *Prog) bool {
	known := make([]int, len(p.Code))
	for i, in := range p.Code {
		known[i] = d.known(p, in, known)
	}
	return !slices.ContainsFunc(p.Results, func(r Ref) bool { return known[r] != noDenormal })
}

func (d Denormals) known(p *Prog, in Instr, known []int) int {
	of := func(i int) int { return known[in.Args[i]] }
	both := func(i, j int) int {
		if of(i) == of(j) {
			return of(i)
		}
		return anything
	}
	float := in.DT == Float32 || in.DT == Float64
	sign := uint64(1) << (max(in.DT.Bits(), 1) - 1)
	is := func(i int, bits uint64) bool {
		c := p.Code[in.Args[i]]
		return c.Op == Const && c.Imm == bits
	}
	switch {
	case in.Op == Const && float && d.Bits(in.DT, in.Imm) == in.Imm, in.Op == Param && float, gives(in.Op) && float:
		return noDenormal
	case in.Op == Const && in.Imm == sign:
		return signOnly
	case in.Op == Neg && float, in.Op == Abs && float, in.Op == Bitcast:
		return of(0)
	case in.Op == Where:
		return both(1, 2)
	case in.Op == Rare && of(1) == noDenormal && d.clean(SubByID(in.Imm)):
		for i, a := range in.Args[2:] {
			if a != None && p.Code[a].DT.IsFloat() && of(2+i) != noDenormal {
				return anything
			}
		}
		return noDenormal
	case in.Op == Lookup && float:
		for _, bits := range TableByID(in.Imm).Bits {
			if d.Bits(in.DT, bits) != bits {
				return anything
			}
		}
		return noDenormal
	case in.Op == And && (is(0, sign) || is(1, sign)):
		return signOnly
	case in.Op == And && is(1, sign-1):
		return of(0)
	case in.Op == And && is(0, sign-1):
		return of(1)
	case (in.Op == Or || in.Op == Xor) && of(0) == noDenormal && of(1) == signOnly,
		(in.Op == Or || in.Op == Xor) && of(0) == signOnly && of(1) == noDenormal:
		return noDenormal
	}
	return anything
}
