package ir

import "fmt"

// needTensors reports a scalar among operands that must be tensors.
func needTensors(op Op, args []Operand) error {
	for i := range args {
		if args[i].Scalar {
			return fmt.Errorf("%w: operand %d of %s is a scalar; it needs a tensor", ErrShape, i, op)
		}
	}
	return nil
}

// inferMove is Infer for Pad, Concat and Assign. shape is the shape that the call requests. Pad's
// result has it; the space behind the operand's elements follows from it.
func inferMove(op Op, info *Info, attr *Attr, shape Shape, args []Operand) (DType, Shape, error) {
	tensors := args
	if op == Pad {
		if !args[1].Scalar {
			return Invalid, nil, fmt.Errorf("%w: pad's fill is a scalar, not a tensor", ErrShape)
		}
		tensors = args[:1]
	}
	if err := needTensors(op, tensors); err != nil {
		return Invalid, nil, err
	}
	dt, err := operandDType(op, info, args)
	if err != nil {
		return Invalid, nil, err
	}
	x := args[0].Shape
	var s Shape
	switch op {
	case Pad:
		s, err = inferPad(attr, shape, x)
	case Concat:
		s, err = inferConcat(attr, x, args[1].Shape)
	case Assign:
		s, err = inferAssign(attr, x, args[1].Shape)
	}
	return dt, s, err
}

func inferPad(attr *Attr, shape, x Shape) (Shape, error) {
	if attr == nil || len(attr.Start) != len(x) || len(attr.Step) != len(x) || len(shape) != len(x) {
		return nil, fmt.Errorf("%w: pad of %v needs numbers before and between, and an extent, for %d dims", ErrShape, x, len(x))
	}
	if err := shape.Check(); err != nil {
		return nil, fmt.Errorf("%w: pad of %v: %w", ErrShape, x, err)
	}
	for d, n := range x {
		before, step, out := attr.Start[d], attr.Step[d], shape[d]
		if before < 0 || step < 1 {
			return nil, fmt.Errorf("%w: pad of %v: dim %d cannot have %d elements before and %d between", ErrShape, x, d, before, step-1)
		}
		// The last element must fit; divisions, so that nothing overflows.
		ok := before <= out
		if n > 0 {
			ok = before < out && (n == 1 || step <= (out-1-before)/(n-1))
		}
		if !ok {
			return nil, fmt.Errorf("%w: pad of %v: dim %d with %d before and %d between does not fit into %d", ErrShape, x, d, before, step-1, out)
		}
	}
	return shape, nil
}

func inferConcat(attr *Attr, x, y Shape) (Shape, error) {
	a, err := checkAxis(Concat, attr, x)
	if err != nil {
		return nil, err
	}
	if !equalBut(a, x, y) {
		return nil, fmt.Errorf("%w: concat of %v and %v along axis %d: the other dims differ", ErrShape, x, y, a)
	}
	r := append(Shape(nil), x...)
	r[a] += y[a]
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%w: concat of %v and %v: %w", ErrShape, x, y, err)
	}
	return r, nil
}

// equalBut reports shapes that differ at most in dim a.
func equalBut(a int, x, y Shape) bool {
	if len(x) != len(y) {
		return false
	}
	for d, n := range x {
		if d != a && n != y[d] {
			return false
		}
	}
	return true
}

// inferAssign checks the region as that of a slice with u's shape.
func inferAssign(attr *Attr, x, u Shape) (Shape, error) {
	if len(u) != len(x) {
		return nil, fmt.Errorf("%w: assign of %v into %v: the ranks differ", ErrShape, u, x)
	}
	if _, err := inferSlice(Assign, attr, u, x); err != nil {
		return nil, err
	}
	return x, nil
}

// checkIndexed reports an index operand or a mode that Gather and Scatter do not take.
func checkIndexed(op Op, attr *Attr, args []Operand) (int, error) {
	if err := needTensors(op, args); err != nil {
		return 0, err
	}
	x, idx := args[0], args[1]
	if !IndexDTypes.Has(idx.DT) {
		return 0, fmt.Errorf("%w: %s by %v; an index is int32 or int64", ErrDType, op, idx.DT)
	}
	a, err := checkAxis(op, attr, x.Shape)
	if err != nil {
		return 0, err
	}
	if attr.Mode >= NumIndexModes || attr.Combine >= NumCombines {
		return 0, fmt.Errorf("%s: unknown mode %d or combine %d", op, attr.Mode, attr.Combine)
	}
	if len(idx.Shape) != len(x.Shape) {
		return 0, fmt.Errorf("%w: %s of %v by indices %v: the ranks differ", ErrShape, op, x.Shape, idx.Shape)
	}
	if attr.Mode == IndexClamp && x.Shape[a] == 0 && idx.Shape.Elems() > 0 {
		return 0, fmt.Errorf("%w: %s of %v: no index can be clamped to axis %d, which is empty", ErrShape, op, x.Shape, a)
	}
	return a, nil
}

func inferGather(info *Info, attr *Attr, args []Operand) (DType, Shape, error) {
	a, err := checkIndexed(Gather, attr, args)
	if err != nil {
		return Invalid, nil, err
	}
	x, idx := args[0], args[1].Shape
	if !info.In.Has(x.DT) {
		return Invalid, nil, fmt.Errorf("%w: gather does not take %v", ErrDType, x.DT)
	}
	r := append(Shape(nil), idx...)
	for d, n := range x.Shape {
		if d == a || n == idx[d] || n == 1 {
			continue
		}
		if idx[d] != 1 {
			return Invalid, nil, fmt.Errorf("%w: gather of %v by indices %v along axis %d: dim %d does not broadcast", ErrShape, x.Shape, idx, a, d)
		}
		r[d] = n
	}
	if err := r.Check(); err != nil {
		return Invalid, nil, fmt.Errorf("%w: gather of %v by indices %v: %w", ErrShape, x.Shape, idx, err)
	}
	return x.DT, r, nil
}

func inferScatter(info *Info, attr *Attr, args []Operand) (DType, Shape, error) {
	a, err := checkIndexed(Scatter, attr, args)
	if err != nil {
		return Invalid, nil, err
	}
	x, idx, u := args[0], args[1].Shape, args[2]
	if x.DT != u.DT {
		return Invalid, nil, fmt.Errorf("%w: scatter of %v into %v; use Cast", ErrDType, u.DT, x.DT)
	}
	if op := attr.Combine.Op(); !info.In.Has(x.DT) || op != OpInvalid && !op.Info().In.Has(x.DT) {
		return Invalid, nil, fmt.Errorf("%w: scatter by %v does not take %v", ErrDType, attr.Combine, x.DT)
	}
	if !idx.Equal(u.Shape) {
		return Invalid, nil, fmt.Errorf("%w: scatter of %v by indices %v: the shapes differ", ErrShape, u.Shape, idx)
	}
	if !equalBut(a, x.Shape, idx) {
		return Invalid, nil, fmt.Errorf("%w: scatter of %v into %v along axis %d: the other dims differ", ErrShape, idx, x.Shape, a)
	}
	return x.DT, x.Shape, nil
}
