package main

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// fn is one block function: a program of primitives over elements of memory.
type fn struct {
	name   string
	op     string
	prog   *ir.Prog
	params []ir.DType
	result ir.DType
}

// row maps an operation to its function.
type row struct {
	op     ir.Op
	dt, in ir.DType
	imm    uint64
	immOf  string // the name of a table or sub-program, by which imm is looked up
	fn     int
}

// list is all functions with the operations they serve.
type list struct {
	fns  []fn
	rows []row
	seen map[string]int // canonical text of a program → function
}

// collect walks the op table.
func collect() *list {
	l := &list{seen: map[string]int{}}
	for op := ir.Op(1); op < ir.NumOps; op++ {
		info := op.Info()
		switch {
		case op == ir.Lookup:
			l.lookups()
		case op == ir.Rare:
			l.rares()
		case op == ir.Bitcast:
			l.bitcasts()
		case info.Class == ir.ClassCreate, info.Class == ir.ClassElementwise, info.Class == ir.ClassPrim && info.Arity > 0 && !info.Outside:
			l.op(op, info)
		}
	}
	return l
}

// whole reports the dtypes whose composite operations get their own functions. For the others an
// operation runs as its primitives, or in the dtype that computes the storage dtype: every function
// costs compile time for all builds.
func whole(dt ir.DType) bool {
	return dt.Tensor() && !dt.Storage() && dt != ir.Uint32 && dt != ir.Uint64
}

// has reports whether an operation gets a function.
func has(op ir.Op, dt, first ir.DType) bool {
	switch {
	case op.Info().Prim:
		return ir.IsPrim(op, dt, first)
	case op == ir.Cast && (dt.Storage() || first.Storage()):
		return ir.Widen(op, dt, []ir.DType{first}) == nil && dt != first
	case op == ir.Cast:
		return whole(dt) && whole(first)
	case op.Info().Out == ir.OutWidth:
		return false // a few primitives
	}
	return whole(dt) && (first == ir.Invalid || whole(first))
}

// op adds an operation for every combination of dtypes with a function.
func (l *list) op(op ir.Op, info *ir.Info) {
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if !info.In.Has(dt) {
			continue
		}
		args := make([]ir.DType, info.Arity)
		for i := range args {
			args[i] = dt
		}
		switch {
		case info.Class == ir.ClassCreate && !has(op, dt, ir.Invalid):
		case info.Class == ir.ClassCreate:
			l.add(row{op: op, dt: dt}, createArgs(op, args))
		case info.Out == ir.OutBool && !has(op, ir.Bool, dt):
		case info.Out == ir.OutBool:
			l.add(row{op: op, dt: ir.Bool, in: dt}, args)
		case info.Out == ir.OutLast:
			args[0] = ir.Bool
			l.add(row{op: op, dt: dt}, args)
		case info.Out == ir.OutAttr:
			for to := ir.Bool; to < ir.NumDTypes; to++ {
				if has(op, to, dt) {
					l.add(row{op: op, dt: to, in: dt}, args)
				}
			}
		case has(op, dt, dt):
			l.add(row{op: op, dt: dt}, args)
		}
	}
}

// createArgs are a creation op's scalars: values in its dtype, except seeds, which are bits.
func createArgs(op ir.Op, args []ir.DType) []ir.DType {
	if op == ir.Uniform || op == ir.Normal {
		return []ir.DType{ir.Uint64}
	}
	return args
}

func (l *list) add(r row, args []ir.DType) {
	l.program(r, ir.Expansion(r.op, r.dt, args))
}

// bitcasts adds copies: only the width matters.
func (l *list) bitcasts() {
	for from := ir.Bool + 1; from < ir.NumDTypes; from++ {
		for to := ir.Bool + 1; to < ir.NumDTypes; to++ {
			if from.Size() == to.Size() {
				l.program(row{op: ir.Bitcast, dt: to, in: from}, one(ir.Instr{Op: ir.Bitcast, DT: to}, from))
			}
		}
	}
}

func (l *list) lookups() {
	for id := uint64(0); ir.TableByID(id) != nil; id++ {
		t := ir.TableByID(id)
		l.program(row{op: ir.Lookup, dt: t.DT, imm: id, immOf: t.Name}, one(ir.Instr{Op: ir.Lookup, DT: t.DT, Imm: id}, ir.Int32))
	}
}

func (l *list) rares() {
	for id := uint64(0); ir.SubByID(id) != nil; id++ {
		s := ir.SubByID(id)
		dt := s.Code[s.Results[0]].DT
		params := append([]ir.DType{ir.Bool, dt}, s.Params...)
		l.program(row{op: ir.Rare, dt: dt, imm: id, immOf: s.Name}, one(ir.Instr{Op: ir.Rare, DT: dt, Imm: id}, params...))
	}
}

// one is the program of a single primitive.
func one(in ir.Instr, params ...ir.DType) *ir.Prog {
	p := &ir.Prog{Params: params}
	in.Args = [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	for i, dt := range params {
		p.Code = append(p.Code, ir.Instr{Op: ir.Param, DT: dt, Imm: uint64(i), Args: in.Args})
	}
	for i := range params {
		in.Args[i] = ir.Ref(i)
	}
	p.Code = append(p.Code, in)
	p.Results = []ir.Ref{ir.Ref(len(params))}
	return p
}

// program gives a row its function: an existing one if it has the same program, else a new one.
func (l *list) program(r row, p *ir.Prog) {
	p = unsigned(p)
	key := text(p)
	n, ok := l.seen[key]
	if !ok {
		n = len(l.fns)
		l.seen[key] = n
		l.fns = append(l.fns, fn{name: fnName(r), op: r.op.String(), prog: p, params: p.Params, result: p.Code[p.Results[0]].DT})
	}
	r.fn = n
	l.rows = append(l.rows, r)
}

func fnName(r row) string {
	parts := []string{r.op.String(), r.dt.Short()}
	if r.immOf != "" {
		parts = append(parts, strings.Map(identRune, r.immOf))
	} else if r.in != ir.Invalid {
		parts = append(parts, r.in.Short())
	}
	return strings.Join(parts, "_")
}

func identRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '_'
}

// text is a program's text without its name.
func text(p *ir.Prog) string {
	var b strings.Builder
	fmt.Fprintln(&b, p.Params, p.Results)
	for _, in := range p.Code {
		fmt.Fprintln(&b, in.Op, in.DT, in.Args, in.Imm)
	}
	return b.String()
}

// How much of a dtype affects a primitive.
const (
	signMatters = iota
	signless    // wraps: signed and unsigned integers give the same bits
	moves       // bits only: floats too
)

func care(in ir.Instr) int {
	switch in.Op {
	case ir.Param, ir.Const, ir.Where, ir.Bitcast:
		return moves
	case ir.Add, ir.Sub, ir.Mul, ir.And, ir.Or, ir.Xor, ir.Not, ir.Neg, ir.ShlRaw, ir.Eq, ir.Ne:
		return signless
	}
	return signMatters
}

// unsigned rewrites a program that does not depend on signs to unsigned types; several operations
// then share its function.
func unsigned(p *ir.Prog) *ir.Prog {
	least := moves
	for _, in := range p.Code {
		least = min(least, care(in))
	}
	change := func(dt ir.DType) ir.DType {
		switch {
		case least == moves && dt != ir.Bool, least == signless && dt.IsInt() && !dt.Storage():
			return dt.Unsigned()
		}
		return dt
	}
	if least == signMatters {
		return p
	}
	q := &ir.Prog{Results: p.Results}
	for _, dt := range p.Params {
		q.Params = append(q.Params, change(dt))
	}
	for _, in := range p.Code {
		in.DT = change(in.DT)
		q.Code = append(q.Code, in)
	}
	return q
}
