package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// A kernel whose rows exceed any single dispatch is run phase by phase. Each phase is a kernel of
// its own, and values pass between phases through memory.

// staged runs a launch phase by phase.
func (s *splitter) staged(k *codegen.Kernel, l *runtime.Launch, skip []bool) error {
	sched := codegen.Phases(k, codegen.PhaseOptions{Recompute: true, Most: s.bindings - 1}) // one binding may be for faults
	c := *l
	c.Args = slices.Clone(l.Args)
	skip = slices.Clone(skip)
	for _, t := range sched.Temps {
		a, err := s.temp(l, t.DT, t.Row)
		if err != nil {
			return err
		}
		c.Args, skip = append(c.Args, a), append(skip, false)
	}
	for _, ph := range sched.Phases {
		if err := s.phase(ph, &c, skip); err != nil {
			return err
		}
	}
	return nil
}

// temp is scratch memory with one element of dt per row, or per point.
func (s *splitter) temp(l *runtime.Launch, dt ir.DType, row bool) (runtime.Access, error) {
	dims := l.Rank
	if row {
		dims = l.Kept
	}
	var a runtime.Access
	n := int64(1)
	for d := dims - 1; d >= 0; d-- {
		a.Stride[d] = n
		n *= l.Dims[d]
	}
	buf, err := s.scratch(max(n, 1) * s.elem(dt))
	a.Buf = buf
	return a, err
}

// phase runs one phase of a launch; the launch's operands are the phase's.
func (s *splitter) phase(ph codegen.Phase, l *runtime.Launch, skip []bool) error {
	if ph.Level == codegen.Row {
		c := *l
		c.Rank = c.Kept
		c.Args = make([]runtime.Access, len(l.Args))
		for i, a := range l.Args {
			c.Args[i] = rowAccess(a, l.Kept)
		}
		return s.part(ph.Kernel, ph.Stores, nil, &c, skip)
	}
	// Scans are cut differently from reductions, and a sort needs several dispatches: each is a
	// part of its own.
	var reductions []codegen.Reduce
	for _, r := range ph.Reduces {
		switch {
		case r.Op.Class() == ir.ClassSort:
			if err := s.sort(ph.Kernel, r, l); err != nil {
				return err
			}
		case r.Op.Class() == ir.ClassScan:
			if err := s.part(ph.Kernel, nil, []codegen.Reduce{r}, l, skip); err != nil {
				return err
			}
		default:
			reductions = append(reductions, r)
		}
	}
	if len(ph.Stores)+len(reductions) == 0 {
		return nil
	}
	return s.part(ph.Kernel, ph.Stores, reductions, l, skip)
}

// part runs some stores and row ops of a phase.
func (s *splitter) part(k *codegen.Kernel, stores []codegen.Store, reduces []codegen.Reduce, l *runtime.Launch, skip []bool) error {
	return s.sub(k, stores, reduces, len(reduces) > 0, l, skip)
}

// sub runs some stores and row ops of a kernel, over rows or over points.
func (s *splitter) sub(k *codegen.Kernel, stores []codegen.Store, reduces []codegen.Reduce, rows bool, l *runtime.Launch, skip []bool) error {
	sub, used := subKernel(k, stores, reduces, rows)
	prog, ready, err := s.build(sub)
	if err != nil {
		return err
	}
	c := *l
	c.Prog = prog
	if !rows {
		c.Kept = c.Rank
	}
	c.Args = make([]runtime.Access, len(used))
	subSkip := make([]bool, len(used))
	for i, o := range used {
		c.Args[i], subSkip[i] = l.Args[o], skip[o]
	}
	return s.whole(ready, &c, subSkip)
}

// subKernel returns the part of a phase that computes some of its stores and row ops, and the
// phase's operands that it uses.
func subKernel(k *codegen.Kernel, stores []codegen.Store, reduces []codegen.Reduce, rows bool) (*codegen.Kernel, []int) {
	sub := &codegen.Kernel{Scalars: k.Scalars, Body: slices.Clone(k.Body)}
	for _, r := range reduces {
		v := ir.Ref(len(sub.Body))
		imm := uint64(0)
		if r.Descending {
			imm = 1
		}
		sub.Body = append(sub.Body, instr(r.Op, k.Operands[r.Operand].DT, imm, r.Value))
		stores = append(slices.Clip(stores), codegen.Store{Operand: r.Operand, Value: v})
	}
	live := make([]bool, len(sub.Body))
	for _, st := range stores {
		live[st.Value] = true
	}
	operand := make([]int, len(k.Operands))
	for i := len(sub.Body) - 1; i >= 0; i-- {
		in := sub.Body[i]
		if !live[i] {
			continue
		}
		for _, a := range in.Args {
			if a != ir.None {
				live[a] = true
			}
		}
		if o, ok := operandOf(in); ok {
			operand[o] = 1
		}
	}
	for _, st := range stores {
		operand[st.Operand] = 1
	}
	var used []int
	for i := range operand {
		if operand[i] == 1 {
			operand[i] = len(used)
			used = append(used, i)
			sub.Operands = append(sub.Operands, k.Operands[i])
		}
	}
	at := make([]ir.Ref, len(sub.Body))
	var body []ir.Instr
	for i, in := range sub.Body {
		if !live[i] {
			continue
		}
		for j, a := range in.Args {
			if a != ir.None {
				in.Args[j] = at[a]
			}
		}
		if o, ok := operandOf(in); ok {
			in.Imm = in.Imm&^uint64(0xffffffff) | uint64(operand[o])
		}
		at[i] = ir.Ref(len(body))
		body = append(body, in)
	}
	sub.Body = body
	writes := make([]bool, len(k.Operands))
	for _, st := range stores {
		writes[st.Operand] = true
		sub.Stores = append(sub.Stores, codegen.Store{Operand: operand[st.Operand], Value: at[st.Value]})
	}
	for i, o := range used {
		if writes[o] {
			sub.Operands[i].Kind = codegen.Output
		} else if sub.Operands[i].Kind == codegen.Output {
			sub.Operands[i].Kind = codegen.Input
		}
		sub.Operands[i].Row = rows && sub.Operands[i].Row
	}
	return sub, used
}

// operandOf returns the operand that an instruction refers to.
func operandOf(in ir.Instr) (int, bool) {
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.IndexLo, ir.IndexHi:
		return int(uint32(in.Imm)), true
	}
	return 0, false
}
