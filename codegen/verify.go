package codegen

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// Verify reports the first reason why k is not a valid kernel: a value used before it is made, an
// operand or scalar slot that does not exist or has another dtype, an output not written exactly
// once. All other functions of this package and all printers may rely on these checks.
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
	if err := k.verifyWrites(); err != nil {
		return err
	}
	return k.verifyRows()
}

// verifyRows checks the rules for rows: a row output takes a row value; a contraction is the only
// row op of its kernel, and all its stores are of row operands; totals are folds.
func (k *Kernel) verifyRows() error {
	rowOps, dots, scatter := 0, 0, k.Scatter()
	for _, in := range k.Body {
		if in.Op.Info().RowOp {
			rowOps++
		}
		if in.Op == ir.Dot {
			dots++
		}
	}
	switch {
	case rowOps == 0:
		return nil
	case len(k.Reduces) > 0 && (dots > 0 || scatter != ir.None):
		return fmt.Errorf("a total beside a contraction or a scatter")
	case dots > 0 && rowOps > 1:
		return fmt.Errorf("a contraction beside another row op")
	case scatter != ir.None && rowOps > 1:
		return fmt.Errorf("a scatter beside another row op")
	case scatter != ir.None:
		return k.verifyScatter(scatter)
	}
	for i, r := range k.Reduces {
		if !TotalOp(r.Op) || !k.Operands[r.Operand].Row {
			return fmt.Errorf("total %d: %s, operand %d", i, r.Op, r.Operand)
		}
	}
	ls := k.Levels()
	for _, s := range k.Stores {
		switch row := k.Operands[s.Operand].Row; {
		case row && ls[s.Value] == Point:
			return fmt.Errorf("store %d: %%%d differs within a row", s.Operand, s.Value)
		case !row && dots > 0:
			return fmt.Errorf("store %d: within the row of a contraction", s.Operand)
		}
	}
	return nil
}

// TotalOp reports the row ops that a total can have: folds of numbers.
func TotalOp(op ir.Op) bool {
	info := op.Info()
	return info.Class == ir.ClassReduce && info.Arity == 1 && !info.Position
}

// verifyScatter checks that the result of a scatter is stored, exactly once and in a row operand,
// and that nothing else is stored.
func (k *Kernel) verifyScatter(scatter ir.Ref) error {
	if len(k.Stores) != 1 || k.Stores[0].Value != scatter || !k.Operands[k.Stores[0].Operand].Row {
		return fmt.Errorf("a scatter must be all that is stored, in a row operand")
	}
	if !k.Operands[slotOf(k.Body[scatter])].Row {
		return fmt.Errorf("a scatter into an operand within rows")
	}
	for i, in := range k.Body {
		if slices.Contains(in.Args[:], scatter) {
			return fmt.Errorf("%%%d: the result of a scatter is in memory only", i)
		}
	}
	return nil
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
	case ir.Load, ir.LoadAt:
		if n > 1 && in.Op == ir.Load || n > 2 {
			return fmt.Errorf("%s: %d operands", in.Op, n)
		}
		return k.verifySlot(in, Input, in.DT)
	case ir.Scatter:
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
	if i := slotOf(in); i >= len(k.Operands) || k.Operands[i].Kind != kind || k.Operands[i].DT != dt {
		return fmt.Errorf("%s: no %v operand %d of %v", in.Op, kind, i, in.DT)
	}
	return nil
}

// verifyWrites checks that each output is written once, with its dtype.
func (k *Kernel) verifyWrites() error {
	written := make([]bool, len(k.Operands))
	write := func(what string, operand int, v ir.Ref, result ir.DType) error {
		if operand < 0 || operand >= len(k.Operands) || k.Operands[operand].Kind != Output {
			return fmt.Errorf("%s %d: no output", what, operand)
		}
		if v < 0 || int(v) >= len(k.Body) {
			return fmt.Errorf("%s %d: no value %%%d", what, operand, v)
		}
		if want := k.Operands[operand].DT; result != ir.Invalid && result != want || result == ir.Invalid && k.Body[v].DT != want {
			return fmt.Errorf("%s %d: %%%d is %v, the output %v", what, operand, v, k.Body[v].DT, want)
		}
		if written[operand] {
			return fmt.Errorf("%s %d: written twice", what, operand)
		}
		written[operand] = true
		return nil
	}
	for _, s := range k.Stores {
		if err := write("store", s.Operand, s.Value, ir.Invalid); err != nil {
			return err
		}
	}
	for _, r := range k.Reduces {
		if !r.Op.Info().RowOp {
			return fmt.Errorf("%s is not a row op", r.Op)
		}
		result := ir.Invalid // the dtype of the value
		if r.Op.Info().Out == ir.OutAttr && r.Operand >= 0 && r.Operand < len(k.Operands) {
			result = k.Operands[r.Operand].DT
		}
		if err := write(r.Op.String(), r.Operand, r.Value, result); err != nil {
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
