package codegen

import "github.com/millrace-go/millrace/ir"

// Flushed returns a kernel that treats denormals as ir.FlushDenormals says. It inserts a Flush for
// each operand and result that needs one. It assumes that each op of k's body, also each Where, is
// an op that a program calls. k must have no other ops, and keep denormals.
//
// Fusion, which can tell a move from a Where, flushes as it writes a body.
func Flushed(k *Kernel) *Kernel {
	f := &Kernel{Operands: k.Operands, Scalars: k.Scalars, Denormals: ir.FlushDenormals}
	at := make([]ir.Ref, len(k.Body))
	emit := func(in ir.Instr) ir.Ref {
		f.Body = append(f.Body, in)
		return ir.Ref(len(f.Body) - 1)
	}
	for i, in := range k.Body {
		at[i] = FlushInto(f.Denormals, &f.Body, renumber(in, at), emit)
	}
	for _, r := range k.Reduces { // totals, which nothing follows
		if r.Value = at[r.Value]; f.Denormals.Flushes(f.Body[r.Value].DT) {
			r.Value = emit(ir.Instr{Op: ir.Flush, DT: f.Body[r.Value].DT, Args: [4]ir.Ref{r.Value, ir.None, ir.None, ir.None}})
		}
		f.Reduces = append(f.Reduces, r)
	}
	f.Stores = append(f.Stores, k.Stores...)
	for i := range f.Stores {
		f.Stores[i].Value = at[f.Stores[i].Value]
	}
	return f
}

// FlushInto emits an op that a program calls, with the flushes around it that d requires. body is
// the list to which emit appends.
func FlushInto(d ir.Denormals, body *[]ir.Instr, in ir.Instr, emit func(ir.Instr) ir.Ref) ir.Ref {
	if !d.Computes(in.Op) {
		return emit(in)
	}
	flush := func(r ir.Ref) ir.Ref {
		dt := (*body)[r].DT
		if !d.Flushes(dt) || clean(d, *body, r, cleanDepth) {
			return r
		}
		return emit(ir.Instr{Op: ir.Flush, DT: dt, Args: [4]ir.Ref{r, ir.None, ir.None, ir.None}})
	}
	var dts [4]ir.DType
	n, first := instrArgs(in), 0
	if in.Op.Info().Indexed {
		first = 2
	}
	for i, a := range in.Args[first:n] {
		dts[i] = (*body)[a].DT
	}
	needs := d.Needs(in.Op, in.DT, dts[:n-first])
	for i := range in.Args[first:n] {
		if needs.Operand(i) {
			in.Args[first+i] = flush(in.Args[first+i])
		}
	}
	r := emit(in)
	if needs.Result {
		r = emit(ir.Instr{Op: ir.Flush, DT: in.DT, Args: [4]ir.Ref{r, ir.None, ir.None, ir.None}})
	}
	return r
}

// cleanDepth is how far clean looks back in a body. An unneeded flush does no harm.
const cleanDepth = 6

// clean reports a value that is certainly not denormal. It knows ops of a program, whose operands
// are flushed, primitives, and conversions from storage dtypes.
func clean(d ir.Denormals, body []ir.Instr, r ir.Ref, depth int) bool {
	if depth == 0 {
		return false
	}
	in := body[r]
	of := func(i int) bool { return clean(d, body, in.Args[i], depth-1) }
	switch in.Op {
	case ir.Flush, ir.Dot, ir.Add, ir.Sub, ir.Mul, ir.FDiv, ir.Div, ir.FMA, ir.Sqrt, ir.Floor, ir.Ceil, ir.Round, ir.Trunc:
		return true
	case ir.Convert:
		return !in.DT.Storage()
	case ir.Const:
		return d.Bits(in.DT, in.Imm) == in.Imm
	case ir.Neg, ir.Abs:
		return of(0)
	case ir.Where: // a program's Where, or a move
		return of(1) && of(2)
	case ir.Cast:
		if in.DT.Storage() && d.Flushes(in.DT) && body[in.Args[0]].DT == in.DT.Compute() {
			return of(0) // a program's Cast, or the store of another op's result
		}
	}
	if in.Op.Class() != ir.ClassElementwise || in.Op.Info().Prim || !d.Computes(in.Op) {
		return false
	}
	var dts [4]ir.DType
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		dts[i] = body[a].DT
	}
	return !d.Needs(in.Op, in.DT, dts[:n]).Result
}

func (s *simplifier) clean(r ir.Ref) bool {
	return s.denormals == ir.FlushDenormals && clean(s.denormals, s.code, r, cleanDepth)
}
