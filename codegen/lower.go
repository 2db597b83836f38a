package codegen

import (
	"fmt"
	"sync"

	"github.com/millrace-go/millrace/ir"
)

// Lower returns a kernel with the same results, bit for bit, whose body has primitives only. Every
// other op is replaced by its expansion, constants are folded with the oracle's arithmetic, equal
// values are computed once, and unused values are removed. Operand and scalar slots stay as they
// are. The body's order depends on k alone.
func Lower(k *Kernel) (*Kernel, error) {
	return simplify(k, func(ir.Instr, ir.DType) bool { return false })
}

// LowerFor is Lower for a printer that writes some ops whole: the ops for which keep is true stay.
// first is the dtype of the op's first operand.
func LowerFor(k *Kernel, keep func(in ir.Instr, first ir.DType) bool) (*Kernel, error) {
	return simplify(k, keep)
}

// Simplify is Lower without the expansions: two equal Erf become one, and unused values are
// removed. The results of the kernel stay the same, bit for bit.
func Simplify(k *Kernel) (*Kernel, error) {
	return simplify(k, func(ir.Instr, ir.DType) bool { return true })
}

func simplify(k *Kernel, keep func(ir.Instr, ir.DType) bool) (*Kernel, error) {
	if err := k.Verify(); err != nil {
		return nil, err
	}
	s := simplifiers.Get().(*simplifier)
	defer s.release()
	s.keep, s.denormals = keep, k.Denormals
	at := make([]ir.Ref, len(k.Body))
	for i, in := range k.Body {
		at[i] = s.emit(renumber(in, at))
		if s.err != nil {
			return nil, s.err
		}
	}
	out := &Kernel{Operands: k.Operands, Scalars: k.Scalars, Denormals: k.Denormals}
	out.Stores = append(out.Stores, k.Stores...)
	for i := range out.Stores {
		out.Stores[i].Value = at[out.Stores[i].Value]
	}
	out.Reduces = append(out.Reduces, k.Reduces...)
	for i := range out.Reduces {
		out.Reduces[i].Value = at[out.Reduces[i].Value]
	}
	out.Body = s.code
	dropDead(out)
	return out, nil
}

// simplifier builds a body in which no two instructions are equal. The operands of an instruction
// are simplified before it, so one forward pass is enough.
type simplifier struct {
	keep func(in ir.Instr, first ir.DType) bool // ops that stay whole
	code []ir.Instr
	seen values // of every instruction given to emit
	err  error

	denormals ir.Denormals
}

// simplifiers holds simplifiers for reuse of their memory, because programs wait for kernels.
var simplifiers = sync.Pool{New: func() any { return &simplifier{code: make([]ir.Instr, 0, 256), seen: newValues(256)} }}

// fewSlots is the largest table that is worth clearing for reuse.
const fewSlots = 1 << 13

func (s *simplifier) release() {
	if len(s.seen.slots) > fewSlots {
		return
	}
	s.seen.reset()
	*s = simplifier{code: s.code[:0], seen: s.seen}
	simplifiers.Put(s)
}

// emit returns the value of in, and makes it if no equal instruction was made before.
func (s *simplifier) emit(in ir.Instr) ir.Ref {
	if in.Op.Info().Commutes && in.Args[0] > in.Args[1] {
		in.Args[0], in.Args[1] = in.Args[1], in.Args[0]
	}
	if r, ok := s.seen.find(in); ok {
		return r
	}
	r := s.value(in)
	s.seen.add(in, r)
	return r
}

func (s *simplifier) value(in ir.Instr) ir.Ref {
	if r, ok := s.fold(in); ok {
		return r
	}
	for i := range rulesOf[in.Op] {
		if r, ok := rulesOf[in.Op][i].try(s, in); ok {
			return r
		}
	}
	if !ir.IsPrim(in.Op, in.DT, s.first(in)) && !s.keep(in, s.first(in)) {
		if p := s.meaning(in); p != nil {
			return s.splice(in, p)
		}
		if !in.Op.Info().RowOp {
			s.err = fmt.Errorf("%s of %v: %w", in.Op, s.first(in), ir.ErrUnsupported)
			return 0
		}
	}
	s.code = append(s.code, in)
	return ir.Ref(len(s.code) - 1)
}

// first is the dtype of in's first operand.
func (s *simplifier) first(in ir.Instr) ir.DType {
	if in.Args[0] == ir.None {
		return ir.Invalid
	}
	return s.code[in.Args[0]].DT
}

// fold computes an instruction whose operands are all constants.
func (s *simplifier) fold(in ir.Instr) (ir.Ref, bool) {
	n := instrArgs(in)
	if n == 0 || in.Op.Info().Outside || !ir.IsPrim(in.Op, in.DT, s.first(in)) {
		return ir.None, false
	}
	var dts [4]ir.DType
	var bits [4]uint64
	for i, a := range in.Args[:n] {
		c := s.code[a]
		if c.Op != ir.Const {
			return ir.None, false
		}
		dts[i], bits[i] = c.DT, c.Imm
	}
	return s.constant(in.DT, s.denormals.EvalPrim(in, dts[:n], bits[:n])), true
}

// meaning is the expansion of an op: on storage dtypes the op in the dtype that computes, else that
// of the table. It is nil for ops on rows, which stay.
func (s *simplifier) meaning(in ir.Instr) *ir.Prog {
	info := in.Op.Info()
	args := in.Args[:instrArgs(in)]
	if info.Indexed {
		args = args[2:] // the position is not an operand
	}
	var dts [4]ir.DType
	for i, a := range args {
		dts[i] = s.code[a].DT
	}
	if p := ir.Widen(in.Op, in.DT, dts[:len(args)]); p != nil {
		return p
	}
	if info.Expand == nil {
		return nil
	}
	return ir.Expansion(in.Op, in.DT, dts[:len(args)])
}

// splice inlines p in place of in.
func (s *simplifier) splice(in ir.Instr, p *ir.Prog) ir.Ref {
	at := make([]ir.Ref, len(p.Code))
	for i, c := range p.Code {
		if c.Op == ir.Param {
			at[i] = in.Args[c.Imm]
			continue
		}
		if c.Op == in.Op {
			c.Imm = in.Imm // the immediate of the row op
		}
		at[i] = s.emit(renumber(c, at))
		if s.err != nil {
			return 0
		}
	}
	return at[p.Results[0]]
}

func renumber(in ir.Instr, at []ir.Ref) ir.Instr {
	for i, a := range in.Args {
		if a != ir.None {
			in.Args[i] = at[a]
		}
	}
	return in
}

// dropDead removes instructions that no store and no reduction needs.
func dropDead(k *Kernel) {
	live := make([]bool, len(k.Body))
	for _, st := range k.Stores {
		live[st.Value] = true
	}
	for _, r := range k.Reduces {
		live[r.Value] = true
	}
	for i := len(k.Body) - 1; i >= 0; i-- {
		if !live[i] {
			continue
		}
		for _, a := range k.Body[i].Args {
			if a != ir.None {
				live[a] = true
			}
		}
	}
	at := make([]ir.Ref, len(k.Body))
	n := 0
	for _, l := range live {
		if l {
			n++
		}
	}
	body := make([]ir.Instr, 0, n) // of exact size, since kernels live long
	for i, in := range k.Body {
		if !live[i] {
			continue
		}
		at[i] = ir.Ref(len(body))
		body = append(body, renumber(in, at))
	}
	for i := range k.Stores {
		k.Stores[i].Value = at[k.Stores[i].Value]
	}
	for i := range k.Reduces {
		k.Reduces[i].Value = at[k.Reduces[i].Value]
	}
	k.Body = body
}
