package codegen

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
)

// Verify reports the first reason why k is no kernel: a value used before it
// is made, an operand or scalar slot that does not exist or has another
// dtype, an output not written exactly once. Every other function of this
// package and every printer may rely on what it checks.
func (k *Kernel) Verify() error {
	for i, o := range k.Operands {
		if o.Kind > Index {
			return fmt.Errorf("operand %d: kind %d", i, o.Kind)
		}
		if o.Kind == Index && o.DT != ir.Invalid || o.Kind != Index && !o.DT.Tensor() {
			return fmt.Errorf("operand %d: %v %v", i, o.Kind, o.DT)
		}
	}
	for i, d := range k.Scalars {
		if d.Size() == 0 {
			return fmt.Errorf("scalar %d: dtype %v", i, d)
		}
	}
	for i := range k.Body {
		if err := k.verifyInstr(i); err != nil {
			return fmt.Errorf("%%%d: %w", i, err)
		}
	}
	return k.verifyWrites()
}

func (k *Kernel) verifyInstr(i int) error {
	in := k.Body[i]
	var buf [4]ir.DType
	n := instrArgs(in)
	for j, a := range in.Args {
		switch {
		case j >= n && a != ir.None:
			return fmt.Errorf("%s: operand %d is missing", in.Op, j-1)
		case j < n && (a < 0 || int(a) >= i):
			return fmt.Errorf("%s: operand %%%d is not made yet", in.Op, a)
		case j < n:
			buf[j] = k.Body[a].DT
		}
	}
	if err := ir.CheckInstr(in, buf[:n]); err != nil {
		return err
	}
	switch in.Op {
	case ir.Param:
		return fmt.Errorf("a kernel has no parameters")
	case ir.Load:
		return k.verifySlot(in, Input, in.DT)
	case ir.IndexLo, ir.IndexHi:
		return k.verifySlot(in, Index, ir.Invalid)
	case ir.Scalar:
		if in.Imm >= uint64(len(k.Scalars)) || k.Scalars[in.Imm] != in.DT {
			return fmt.Errorf("no scalar %d of %v", in.Imm, in.DT)
		}
	}
	return nil
}

func (k *Kernel) verifySlot(in ir.Instr, kind OperandKind, dt ir.DType) error {
	if in.Imm >= uint64(len(k.Operands)) || k.Operands[in.Imm] != (Operand{kind, dt}) {
		return fmt.Errorf("%s: no %v operand %d of %v", in.Op, kind, in.Imm, in.DT)
	}
	return nil
}

// verifyWrites checks that each output is written once, with its dtype.
func (k *Kernel) verifyWrites() error {
	written := make([]bool, len(k.Operands))
	write := func(what string, operand int, v ir.Ref) error {
		if operand < 0 || operand >= len(k.Operands) || k.Operands[operand].Kind != Output {
			return fmt.Errorf("%s %d: no output", what, operand)
		}
		if v < 0 || int(v) >= len(k.Body) {
			return fmt.Errorf("%s %d: no value %%%d", what, operand, v)
		}
		if got, want := k.Body[v].DT, k.Operands[operand].DT; got != want {
			return fmt.Errorf("%s %d: %%%d is %v, the output %v", what, operand, v, got, want)
		}
		if written[operand] {
			return fmt.Errorf("%s %d: written twice", what, operand)
		}
		written[operand] = true
		return nil
	}
	for _, s := range k.Stores {
		if err := write("store", s.Operand, s.Value); err != nil {
			return err
		}
	}
	for _, r := range k.Reduces {
		if r.Op.Class() != ir.ClassReduce {
			return fmt.Errorf("%s is no reduction", r.Op)
		}
		if err := write(r.Op.String(), r.Operand, r.Value); err != nil {
			return err
		}
		if dt := k.Body[r.Value].DT; !r.Op.Info().In.Has(dt) {
			return fmt.Errorf("%s of %v", r.Op, dt)
		}
	}
	for i, o := range k.Operands {
		if o.Kind == Output && !written[i] {
			return fmt.Errorf("output %d is never written", i)
		}
	}
	return nil
}

// instrArgs counts the operands of an instruction.
func instrArgs(in ir.Instr) int {
	n := 0
	for n < len(in.Args) && in.Args[n] != ir.None {
		n++
	}
	return n
}

// String names the kind as the text form does.
func (k OperandKind) String() string {
	switch k {
	case Input:
		return "in"
	case Output:
		return "out"
	}
	return "index"
}
