package ir

import (
	"fmt"
	"slices"
)

// CheckInstr reports why a scalar instruction cannot have operands of these dtypes. It covers the
// ops of the table and the primitives alike. The meaning of Imm for Param, Load, IndexLo, IndexHi
// and Scalar depends on the context of the instruction and is checked there.
func CheckInstr(in Instr, args []DType) error {
	info := in.Op.Info()
	if in.Op == OpInvalid || info.Name == "" {
		return fmt.Errorf("op %d does not exist", uint8(in.Op))
	}
	if in.DT == Invalid || in.DT >= NumDTypes {
		return fmt.Errorf("%s of dtype %v", in.Op, in.DT)
	}
	// A sub-program of one parameter leaves Rare's last operand out.
	n := instrArity(in.Op, info)
	if len(args) != n && !(in.Op == Rare && len(args) == n-1) && !(len(args) > n && len(args) <= n+info.Optional) {
		return fmt.Errorf("%s takes %d operands, got %d", in.Op, n, len(args))
	}
	switch info.Class {
	case ClassCreate:
		return checkCreate(in, info, args)
	case ClassElementwise:
		return checkElementwise(in, info, args)
	case ClassReduce, ClassScan, ClassSort:
		return checkRow(in, info, args)
	case ClassScatter:
		return checkScatter(in, info, args)
	case ClassPrim:
		return checkPrim(in, info, args)
	}
	return fmt.Errorf("%s is not defined for single elements", in.Op)
}

func instrArity(op Op, info *Info) int {
	switch {
	case info.Indexed:
		return info.Arity + 2
	case op == Scatter:
		return info.Arity - 1 // the operand that it changes is memory, which Imm names
	}
	return info.Arity
}

// CheckBits reports a value that is not a bit pattern of its dtype: bits above its width, or a bool
// other than 0 and 1.
func CheckBits(dt DType, bits uint64) error {
	if dt == Bool && bits > 1 || dt.Bits() < 64 && bits>>dt.Bits() != 0 {
		return fmt.Errorf("%#x is not a value of %v", bits, dt)
	}
	return nil
}

func checkCreate(in Instr, info *Info, args []DType) error {
	if !info.In.Has(in.DT) {
		return fmt.Errorf("%w: %s cannot make %v", ErrDType, in.Op, in.DT)
	}
	if info.Indexed {
		if args[0] != Uint32 || args[1] != Uint32 {
			return fmt.Errorf("%w: %s needs its position as two uint32", ErrDType, in.Op)
		}
		args = args[2:]
	}
	for i, d := range args {
		if want := ScalarDType(in.Op, i, Invalid, in.DT); d != want {
			return fmt.Errorf("%w: %s: scalar %d is %v, want %v", ErrDType, in.Op, i, d, want)
		}
	}
	return nil
}

func checkElementwise(in Instr, info *Info, args []DType) error {
	var ops [3]Operand
	for i, d := range args {
		ops[i].DT = d
	}
	dt, err := operandDType(in.Op, info, ops[:len(args)])
	if err != nil {
		return err
	}
	want := dt
	switch info.Out {
	case OutBool:
		want = Bool
	case OutAttr:
		want = in.DT
	case OutWidth:
		if sameWidth(dt, in.DT) {
			want = in.DT
		}
	}
	if in.DT != want {
		return fmt.Errorf("%w: %s makes %v, not %v", ErrDType, in.Op, want, in.DT)
	}
	return nil
}

// checkRow checks a row op as an instruction of a kernel's body.
func checkRow(in Instr, info *Info, args []DType) error {
	for _, d := range args {
		if d != args[0] || !info.In.Has(d) {
			return fmt.Errorf("%w: %s does not take %v", ErrDType, in.Op, args)
		}
	}
	want, err := rowDType(in.Op, info, args[0], in.DT)
	if err == nil && want != in.DT {
		err = fmt.Errorf("%w: %s makes %v, not %v", ErrDType, in.Op, want, in.DT)
	}
	return err
}

// checkScatter checks a scatter as an instruction of a kernel's body.
func checkScatter(in Instr, info *Info, args []DType) error {
	mode, how := in.Imm>>32&255, Combine(in.Imm>>40)
	if mode >= uint64(NumIndexModes) || in.Imm>>40 >= uint64(NumCombines) {
		return fmt.Errorf("%s: unknown mode %d or combine %d", in.Op, mode, in.Imm>>40)
	}
	if op := how.Op(); !IndexDTypes.Has(args[0]) || args[1] != in.DT || !info.In.Has(in.DT) || op != OpInvalid && !op.Info().In.Has(in.DT) {
		return fmt.Errorf("%w: %s of %v at %v by %v makes no %v", ErrDType, in.Op, args[1], args[0], how, in.DT)
	}
	return nil
}

// checkGuard checks the guard of a load, if there is one.
func checkGuard(in Instr, args []DType) error {
	if len(args) > 0 && args[0] != Bool {
		return fmt.Errorf("%w: %s guarded by %v", ErrDType, in.Op, args[0])
	}
	return nil
}

func checkPrim(in Instr, info *Info, args []DType) error {
	switch in.Op {
	case Const:
		return CheckBits(in.DT, in.Imm)
	case IndexLo, IndexHi:
		if in.DT != Uint32 {
			return fmt.Errorf("%w: %s is uint32, not %v", ErrDType, in.Op, in.DT)
		}
		return nil
	case Param, Scalar, Convert:
		return nil
	case Load:
		return checkGuard(in, args)
	case LoadAt:
		if !info.In.Has(args[0]) {
			return fmt.Errorf("%w: %s at %v", ErrDType, in.Op, args[0])
		}
		if mode := in.Imm >> 32; mode >= uint64(NumIndexModes) {
			return fmt.Errorf("%s: unknown mode %d", in.Op, mode)
		}
		return checkGuard(in, args[1:])
	case Bitcast:
		if args[0].Size() != in.DT.Size() || args[0] == Bool || in.DT == Bool {
			return fmt.Errorf("%w: bitcast of %v to %v", ErrDType, args[0], in.DT)
		}
		return nil
	case Lookup:
		if args[0] != Int32 {
			return fmt.Errorf("%w: lookup by %v", ErrDType, args[0])
		}
		if t := TableByID(in.Imm); t == nil || t.DT != in.DT {
			return fmt.Errorf("no table %d of %v", in.Imm, in.DT)
		}
		return nil
	case Rare:
		if args[0] != Bool || args[1] != in.DT {
			return fmt.Errorf("%w: rare of %v and %v makes no %v", ErrDType, args[0], args[1], in.DT)
		}
		sub := SubByID(in.Imm)
		if sub == nil {
			return fmt.Errorf("no sub-program %d", in.Imm)
		}
		if makes := sub.Code[sub.Results[0]].DT; makes != in.DT || !slices.Equal(sub.Params, args[2:]) {
			return fmt.Errorf("%w: %s makes %v of %v, not %v of %v", ErrDType, sub.Name, makes, sub.Params, in.DT, args[2:])
		}
		return nil
	}
	for _, d := range args {
		if d != in.DT || !info.In.Has(d) {
			return fmt.Errorf("%w: %s of %v makes no %v", ErrDType, in.Op, args, in.DT)
		}
	}
	return nil
}
