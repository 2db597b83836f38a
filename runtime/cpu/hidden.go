package cpu

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
)

// A kernel may hide an operand's value: adding -inf gives -inf for every finite number, and a
// select shows only one of its two values. This file follows an operand through a kernel. It finds
// the points where the kernel's results do not depend on the operand.

// hiding describes where an operand of a kernel is hidden.
type hiding struct {
	operand int // the hidden operand
	// mask is the operand of the kernel that tells where, in the form of kind; -1 if no single
	// operand does.
	mask int
	kind contract.MaskKind
	// small: only numbers are hidden, and only those small enough that a product with maskRoom is
	// finite. Otherwise every value is hidden, also NaN.
	small bool
	// kernel computes whether a point is hidden from the operands in reads, and stores the result
	// in one more operand.
	kernel *codegen.Kernel
	reads  []int
	prog   *maskProgram // the program of kernel
}

// maskRoom bounds the factors between an operand and the -inf that is added: sums of small
// numbers, which are below 2^89, stay finite times maskRoom.
const maskRoom = 0x1p38

// Conditions that need no instruction.
const (
	always ir.Ref = -2
	never  ir.Ref = -3
)

// trace describes how a value of a kernel depends on the operand.
type trace struct {
	any    bool   // it depends on the operand
	late   bool   // it is computed from a row op's result, and so from the unhidden operand
	hidden ir.Ref // the condition under which it does not depend on the operand
	// factor is above 0 if the value is the operand times finite numbers: no product with some of
	// these numbers is more than factor times as large as the operand. Else it is 0.
	factor float64
}

// tracer follows an operand through a kernel.
type tracer struct {
	k       *codegen.Kernel
	scalars []uint64
	values  []trace
	out     []ir.Instr // body of the kernel that computes conditions
	at      []ir.Ref   // the refs in out of k's values; None for values not in out
	small   bool
}

// hidingRules are the ops that can hide an operand, or that keep a product of it. Every other op
// depends on the operand wherever one of its arguments does.
var hidingRules = map[ir.Op]func(t *tracer, in *ir.Instr) trace{
	ir.Neg: (*tracer).negated, ir.Mul: (*tracer).scaled, ir.Div: (*tracer).scaled,
	ir.Add: (*tracer).added, ir.Where: (*tracer).chosen,
}

// hidingOf finds where an operand of a kernel is hidden; it returns nil if it never is.
func hidingOf(k *codegen.Kernel, operand int, scalars []uint64) *hiding {
	t := &tracer{k: k, scalars: scalars, values: make([]trace, len(k.Body)), at: make([]ir.Ref, len(k.Body))}
	seen := always // the condition that no result depends on the operand
	for i := range k.Body {
		t.at[i] = ir.None
		in := &k.Body[i]
		v, ok := t.value(in, operand)
		if !ok {
			return nil
		}
		if in.Op.Info().RowOp {
			seen = t.both(seen, v.hidden)
			v = trace{late: true, hidden: always}
		}
		t.values[i] = v
	}
	for _, s := range k.Stores {
		seen = t.both(seen, t.values[s.Value].hidden)
	}
	if seen < 0 {
		return nil
	}
	h := &hiding{operand: operand, small: t.small}
	h.mask, h.kind = t.plain(seen, k.Operands[operand].DT)
	h.kernel, h.reads = t.kernel(seen)
	return h
}

// value traces an instruction. ok is false if the operand decides an address, or is not read by a
// plain load.
func (t *tracer) value(in *ir.Instr, operand int) (v trace, ok bool) {
	v.hidden = always
	for _, a := range in.Args {
		if a == ir.None {
			continue
		}
		from := &t.values[a]
		v.late = v.late || from.late
		v.any = v.any || from.any
		v.hidden = t.both(v.hidden, from.hidden)
	}
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
		if int(uint32(in.Imm)) != operand {
			return v, !v.any
		}
		return trace{any: true, hidden: never, factor: 1}, in.Op == ir.Load && in.Args[0] == ir.None
	}
	if rule := hidingRules[in.Op]; rule != nil && v.any {
		if found := rule(t, in); found.any {
			found.late = v.late
			return found, true
		}
	}
	return v, true
}

// negated traces a product by -1.
func (t *tracer) negated(in *ir.Instr) trace {
	v := t.values[in.Args[0]]
	return trace{any: v.factor > 0, hidden: v.hidden, factor: v.factor}
}

// scaled traces a product by a finite number, or a quotient.
func (t *tracer) scaled(in *ir.Instr) trace {
	x, y := in.Args[0], in.Args[1]
	if in.Op == ir.Mul && t.values[y].any {
		x, y = y, x
	}
	v := t.values[x]
	by, finite := t.finiteNumber(y)
	if v.factor == 0 || !finite {
		return trace{}
	}
	if in.Op == ir.Div {
		by = 1 / by
	}
	// A factor below 1 counts as 1: the factors above 1 must stay below maskRoom even if those
	// below 1 come last.
	return trace{any: true, hidden: v.hidden, factor: float64(v.factor * max(math.Abs(by), 1))}
}

// added traces a sum: -inf hides finite numbers.
func (t *tracer) added(in *ir.Instr) trace {
	x, m := in.Args[0], in.Args[1]
	if t.values[m].any {
		x, m = m, x
	}
	v := t.values[x]
	if v.factor == 0 || v.factor > maskRoom || t.values[m].any || t.values[m].late {
		return trace{}
	}
	hidden := t.either(v.hidden, t.minusInf(m))
	t.small = t.small || hidden != v.hidden
	return trace{any: true, hidden: hidden}
}

// chosen traces a select.
func (t *tracer) chosen(in *ir.Instr) trace {
	c := in.Args[0]
	if t.values[c].any || t.values[c].late {
		return trace{}
	}
	return trace{any: true, hidden: t.choose(t.copied(c), t.values[in.Args[1]].hidden, t.values[in.Args[2]].hidden)}
}

// minusInf returns the condition that a value, which does not depend on the operand, is -inf.
func (t *tracer) minusInf(v ir.Ref) ir.Ref {
	in := &t.k.Body[v]
	if f, ok := t.number(v); ok {
		if math.IsInf(f, -1) {
			return always
		}
		return never
	}
	if in.Op == ir.Where {
		return t.choose(t.copied(in.Args[0]), t.minusInf(in.Args[1]), t.minusInf(in.Args[2]))
	}
	inf, ok := minusInfs[in.DT]
	if !ok {
		return never
	}
	return t.emit(ir.Instr{Op: ir.Eq, DT: ir.Bool}, t.copied(v), t.emit(inf))
}

// minusInfs are the constants -inf.
var minusInfs = map[ir.DType]ir.Instr{
	ir.Float32: {Op: ir.Const, DT: ir.Float32, Imm: uint64(math.Float32bits(float32(math.Inf(-1))))},
	ir.Float64: {Op: ir.Const, DT: ir.Float64, Imm: math.Float64bits(math.Inf(-1))},
}

// number returns the value of a scalar or constant of float32 or float64.
func (t *tracer) number(v ir.Ref) (f float64, ok bool) {
	in := &t.k.Body[v]
	if in.Op == ir.Full {
		return t.number(in.Args[0])
	}
	var bits uint64
	switch in.Op {
	case ir.Scalar:
		bits = t.scalars[in.Imm]
	case ir.Const:
		bits = in.Imm
	default:
		return 0, false
	}
	switch in.DT {
	case ir.Float32:
		return float64(math.Float32frombits(uint32(bits))), true
	case ir.Float64:
		return math.Float64frombits(bits), true
	}
	return 0, false
}

func (t *tracer) finiteNumber(v ir.Ref) (float64, bool) {
	f, ok := t.number(v)
	return f, ok && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// copied adds a value of the kernel, which does not depend on the operand, to the conditions'
// kernel.
func (t *tracer) copied(v ir.Ref) ir.Ref {
	if t.at[v] == ir.None {
		in := t.k.Body[v]
		var args []ir.Ref
		for _, a := range in.Args {
			if a != ir.None {
				a = t.copied(a)
			}
			args = append(args, a)
		}
		t.at[v] = t.emit(in, args...)
	}
	return t.at[v]
}

// emit appends an instruction, or returns an equal one.
func (t *tracer) emit(in ir.Instr, args ...ir.Ref) ir.Ref {
	in.Args = [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	copy(in.Args[:], args)
	for i := range t.out {
		if t.out[i] == in {
			return ir.Ref(i)
		}
	}
	t.out = append(t.out, in)
	return ir.Ref(len(t.out) - 1)
}

func (t *tracer) not(c ir.Ref) ir.Ref {
	switch {
	case c == always:
		return never
	case c == never:
		return always
	case t.out[c].Op == ir.Not:
		return t.out[c].Args[0]
	}
	return t.emit(ir.Instr{Op: ir.Not, DT: ir.Bool}, c)
}

func (t *tracer) both(a, b ir.Ref) ir.Ref {
	switch {
	case a == never || b == never:
		return never
	case a == always || a == b:
		return b
	case b == always:
		return a
	}
	return t.emit(ir.Instr{Op: ir.And, DT: ir.Bool}, a, b)
}

func (t *tracer) either(a, b ir.Ref) ir.Ref { return t.not(t.both(t.not(a), t.not(b))) }

// choose returns the condition x where c is true, else y.
func (t *tracer) choose(c, x, y ir.Ref) ir.Ref {
	if x == y {
		return x
	}
	return t.either(t.both(c, x), t.both(t.not(c), y))
}

// plain returns the mask of dtype dt that is equivalent to a condition, or -1.
func (t *tracer) plain(c ir.Ref, dt ir.DType) (mask int, kind contract.MaskKind) {
	in, kind, want := &t.out[c], contract.ByTrue, ir.Bool
	switch {
	case in.Op == ir.Not:
		in, kind = &t.out[in.Args[0]], contract.ByFalse
	case in.Op == ir.Eq && t.out[in.Args[1]].Op == ir.Const && t.out[in.Args[1]].Imm == minusInfs[dt].Imm:
		in, kind, want = &t.out[in.Args[0]], contract.ByInf, dt
	}
	if in.Op != ir.Load || in.Args[0] != ir.None || in.DT != want {
		return -1, 0
	}
	return int(uint32(in.Imm)), kind
}

// kernel returns a kernel that stores a condition, and the operands of the original kernel that it
// reads.
func (t *tracer) kernel(c ir.Ref) (k *codegen.Kernel, reads []int) {
	k = &codegen.Kernel{Scalars: t.k.Scalars}
	at := make(map[ir.Ref]ir.Ref)
	var put func(v ir.Ref) ir.Ref
	put = func(v ir.Ref) ir.Ref {
		if to, ok := at[v]; ok {
			return to
		}
		in := t.out[v]
		for i, a := range in.Args {
			if a != ir.None {
				in.Args[i] = put(a)
			}
		}
		switch in.Op {
		case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
			slot := int(uint32(in.Imm))
			n := slices.Index(reads, slot)
			if n < 0 {
				n = len(reads)
				reads = append(reads, slot)
				o := t.k.Operands[slot]
				o.Row = false // a point is a row
				k.Operands = append(k.Operands, o)
			}
			in.Imm = in.Imm>>32<<32 | uint64(n)
		}
		k.Body = append(k.Body, in)
		at[v] = ir.Ref(len(k.Body) - 1)
		return at[v]
	}
	value := put(c)
	k.Stores = []codegen.Store{{Operand: len(reads), Value: value}}
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: ir.Bool})
	return k, reads
}
