package ir

import (
	"fmt"
	"slices"
	"sync"
)

// expansionKey is the key of the expansions that are cached.
type expansionKey struct {
	op    Op
	dt    DType
	nargs uint8
	args  [4]DType
}

var expansions sync.Map // expansionKey → *Prog

// Expansion is the meaning of op for one element, in primitives only. dt is the result's dtype,
// argDT those of the operands. The position of an Indexed op precedes them as two more parameters,
// IndexLo and IndexHi. If op itself is a primitive, the Prog is that one instruction. Progs are
// cached and shared: callers must not change them. Expansion is safe for concurrent use. op must
// take the given dtypes.
func Expansion(op Op, dt DType, argDT []DType) *Prog {
	key := expansionKey{op: op, dt: dt, nargs: uint8(len(argDT))}
	copy(key.args[:], argDT)
	if p, ok := expansions.Load(key); ok {
		return p.(*Prog)
	}
	p, _ := expansions.LoadOrStore(key, expand(op, dt, argDT))
	return p.(*Prog)
}

func expand(op Op, dt DType, argDT []DType) *Prog {
	if p := Widen(op, dt, argDT); p != nil {
		return lower(p)
	}
	info := op.Info()
	p := &Prog{Name: fmt.Sprintf("%v.%v", op, dt)}
	if info.Indexed {
		p.Params = append(p.Params, Uint32, Uint32)
	}
	p.Params = append(p.Params, argDT...)
	b := builders.Get().(*Builder)
	args := make([]Ref, len(p.Params))
	for i, d := range p.Params {
		args[i] = b.Emit(Param, d, uint64(i))
	}
	var result Ref
	if IsPrim(op, dt, leading(argDT)) {
		result = b.Emit(op, dt, 0, args...)
	} else {
		result = info.Expand(b, dt, args)
	}
	p.Code, p.Results = b.Code, []Ref{result}
	q := lower(p)
	b.release()
	return q
}

// builders holds builders whose code was copied, for reuse of their memory.
var builders = sync.Pool{New: func() any { return &Builder{Code: make([]Instr, 0, 256)} }}

func (b *Builder) release() {
	b.Code = b.Code[:0]
	builders.Put(b)
}

// lower replaces every op of p that is not a primitive by its expansion, and drops repeated and
// unused instructions.
func lower(p *Prog) *Prog {
	b := builders.Get().(*Builder)
	results := b.splice(p, nil)
	q := tidy(&Prog{Name: p.Name, Params: p.Params, Code: b.Code, Results: results})
	b.release()
	return q
}

// splice appends p's code in primitives, with args in place of its parameters (nil keeps them), and
// returns its results.
func (b *Builder) splice(p *Prog, args []Ref) []Ref {
	at := make([]Ref, len(p.Code)) // the new value of each value of p
	b.Code = slices.Grow(b.Code, len(p.Code))
	for i, in := range p.Code {
		if in.Op == Param && args != nil {
			at[i] = args[in.Imm]
			continue
		}
		var mapped []Ref
		var argDT []DType
		for k, a := range in.Args {
			if a == None {
				continue
			}
			in.Args[k] = at[a]
			mapped = append(mapped, at[a])
			argDT = append(argDT, p.Code[a].DT)
		}
		if IsPrim(in.Op, in.DT, leading(argDT)) {
			b.Code = append(b.Code, in)
			at[i] = Ref(len(b.Code) - 1)
			continue
		}
		if in.Op.Info().Indexed {
			argDT = argDT[2:]
		}
		at[i] = b.splice(Expansion(in.Op, in.DT, argDT), mapped)[0]
	}
	results := make([]Ref, len(p.Results))
	for i, r := range p.Results {
		results[i] = at[r]
	}
	return results
}

// tidy returns p with the first of equal instructions and without those that no result needs, in
// code of its own. All primitives are pure, so neither changes a value. Parameters stay.
func tidy(p *Prog) *Prog {
	// Equal instructions have the same first operand: heads has the last instruction with each, by
	// operand+1, and before the previous one with the same. Both count from 1.
	n := len(p.Code)
	lists := make([]Ref, 3*n+1)
	same, before, heads := lists[:n], lists[n:2*n], lists[2*n:]
	code := make([]Instr, n)
	for i, in := range p.Code {
		for k, a := range in.Args {
			if a != None {
				in.Args[k] = same[a]
			}
		}
		code[i], same[i] = in, Ref(i)
		head := &heads[in.Args[0]+1]
		at := *head
		for at > 0 && code[at-1] != in {
			at = before[at-1]
		}
		if at > 0 {
			same[i] = at - 1
			continue
		}
		before[i], *head = *head, Ref(i+1)
	}
	live := make([]bool, len(code))
	for _, r := range p.Results {
		live[same[r]] = true
	}
	for i := len(code) - 1; i >= 0; i-- {
		if code[i].Op == Param {
			live[i] = same[i] == Ref(i)
		}
		if !live[i] {
			continue
		}
		for _, a := range code[i].Args {
			if a != None {
				live[a] = true
			}
		}
	}
	q := &Prog{Name: p.Name, Params: p.Params, Code: code[:0]}
	at := before // its work is done
	for i, in := range code {
		if !live[i] {
			continue
		}
		for k, a := range in.Args {
			if a != None {
				in.Args[k] = at[a]
			}
		}
		q.Code = append(q.Code, in)
		at[i] = Ref(len(q.Code) - 1)
	}
	for _, r := range p.Results {
		q.Results = append(q.Results, at[same[r]])
	}
	return q
}

// EvalProg runs a Prog of primitives on one element. args are the parameters' bits; it returns the
// results' bits.
func EvalProg(p *Prog, args []uint64) []uint64 {
	vals := make([]uint64, len(p.Code))
	KeepDenormals.one(p, args, vals)
	out := make([]uint64, len(p.Results))
	for i, r := range p.Results {
		out[i] = vals[r]
	}
	return out
}

// evalFirst is EvalProg's first result. Most Progs are short, and their values need no heap memory.
func (d Denormals) evalFirst(p *Prog, args []uint64) uint64 {
	var few [32]uint64
	vals := few[:]
	if len(p.Code) > len(few) {
		vals = make([]uint64, len(p.Code))
	}
	d.one(p, args, vals)
	return vals[p.Results[0]]
}

// one computes the value of every instruction into vals.
func (d Denormals) one(p *Prog, args, vals []uint64) {
	var dts [4]DType
	var in [4]uint64
	for i := range p.Code {
		ins := &p.Code[i]
		if ins.Op == Param {
			vals[i] = args[ins.Imm]
			continue
		}
		n := 0
		for n < len(ins.Args) && ins.Args[n] != None {
			a := ins.Args[n]
			dts[n], in[n] = p.Code[a].DT, vals[a]
			n++
		}
		vals[i] = d.EvalPrim(*ins, dts[:n], in[:n])
	}
}

// rows computes the values of every instruction on n elements into vals, those of instruction i
// from i*n on. The bits of parameter k are in args, from k*n on.
func (d Denormals) rows(p *Prog, n int, args, vals []uint64) {
	var dts [4]DType
	var in [4][]uint64
	for i := range p.Code {
		ins, out := &p.Code[i], vals[i*n:(i+1)*n]
		if ins.Op == Param {
			copy(out, args[int(ins.Imm)*n:])
			continue
		}
		operands := 0
		for operands < len(ins.Args) && ins.Args[operands] != None {
			a := int(ins.Args[operands])
			dts[operands], in[operands] = p.Code[a].DT, vals[a*n:(a+1)*n]
			operands++
		}
		d.EvalPrims(*ins, dts[:operands], in[:operands], out)
	}
}

// runLength is the number of elements that evalRows computes at a time. It is small enough that the
// values of all instructions stay in a cache.
const runLength = 256

// evalRows computes the first result for every element of the parameters' rows, one row per
// parameter, into out.
func (d Denormals) evalRows(p *Prog, rows [][]uint64, out []uint64) {
	most := min(runLength, len(out))
	args, vals := make([]uint64, len(rows)*most), make([]uint64, len(p.Code)*most)
	for from := 0; from < len(out); from += most {
		n := min(most, len(out)-from)
		for k, row := range rows {
			copy(args[k*n:(k+1)*n], row[from:])
		}
		d.rows(p, n, args, vals)
		copy(out[from:], vals[int(p.Results[0])*n:][:n])
	}
}

// EvalOp is op on one element: its meaning, with which every tier must agree. For an Indexed op
// args begin with the position's two halves.
func EvalOp(op Op, dt DType, argDT []DType, args []uint64) uint64 {
	return KeepDenormals.EvalOp(op, dt, argDT, args)
}

// EvalOp is the function EvalOp in which the primitives of op's expansion treat denormals as d
// says. It does not flush op's operands itself.
func (d Denormals) EvalOp(op Op, dt DType, argDT []DType, args []uint64) uint64 {
	return d.evalFirst(Expansion(op, dt, argDT), args)
}

// EvalOps is [EvalOp] for every element of out, from the corresponding elements of args.
func EvalOps(op Op, dt DType, argDT []DType, args [][]uint64, out []uint64) {
	KeepDenormals.EvalOps(op, dt, argDT, args, out)
}

// EvalOps is EvalOp for every element of out.
func (d Denormals) EvalOps(op Op, dt DType, argDT []DType, args [][]uint64, out []uint64) {
	d.evalRows(Expansion(op, dt, argDT), args, out)
}
