package ir

import "fmt"

// Operand describes an operand for Infer. A scalar has no shape. Its DT may be Invalid, which means
// the dtype that [ScalarDType] gives.
type Operand struct {
	DT     DType
	Shape  Shape
	Scalar bool
}

// Infer gives the dtype and shape of an op's result. The error says why there is none; it wraps
// ErrShape or ErrDType and names the shapes and dtypes.
//
// dt is the dtype that the call requests (Cast and creation; ignored for other ops). shape is the
// shape that the call requests: that of a creation, the target of Reshape and Expand, the extents
// of Slice; it is ignored for other ops. The caller resolves negative indices, a -1 in a reshape
// and the order of axes: attr is as [Attr] says.
//
// The result may share memory with shape or an operand's shape. If operands have equal shapes, or
// one shape covers the others, Infer does not allocate.
func Infer(op Op, attr *Attr, dt DType, shape Shape, args ...Operand) (DType, Shape, error) {
	info := op.Info()
	if len(args) != info.Arity {
		return Invalid, nil, fmt.Errorf("%s takes %d operands, got %d", op, info.Arity, len(args))
	}
	switch info.Class {
	case ClassCreate:
		return inferCreate(op, info, dt, shape)
	case ClassElementwise:
		in, err := operandDType(op, info, args)
		if err != nil {
			return Invalid, nil, err
		}
		out, err := resultDType(op, info, in, dt)
		if err != nil {
			return Invalid, nil, err
		}
		s, err := broadcastAll(args)
		return out, s, err
	case ClassReduce, ClassScan, ClassSort:
		return inferRow(op, info, attr, dt, args)
	case ClassMove:
		return inferMove(op, info, attr, shape, args)
	case ClassGather:
		return inferGather(info, attr, args)
	case ClassScatter:
		return inferScatter(info, attr, args)
	case ClassView:
		x := args[0]
		if x.Scalar {
			return Invalid, nil, fmt.Errorf("%s needs a tensor operand", op)
		}
		if !info.In.Has(x.DT) {
			return Invalid, nil, fmt.Errorf("%w: %s does not take %v", ErrDType, op, x.DT)
		}
		s, err := inferShape(op, attr, shape, x.Shape)
		return x.DT, s, err
	case ClassMark:
		return Invalid, nil, nil
	}
	return Invalid, nil, fmt.Errorf("%s is not an op on tensors", op)
}

// ScalarDType is the dtype of scalar operand i of an op. tensor is the dtype of its tensor operands
// (not counting a mask), dt that of its result.
func ScalarDType(op Op, i int, tensor, dt DType) DType {
	switch info := op.Info(); {
	case info.Class == ClassCreate && (op == Uniform || op == Normal):
		return Uint64
	case info.Class == ClassCreate:
		return dt
	case info.Out == OutLast && i == 0:
		return Bool
	case info.Out == OutLast:
		return dt
	}
	return tensor
}

func inferCreate(op Op, info *Info, dt DType, shape Shape) (DType, Shape, error) {
	if !info.In.Has(dt) || !dt.Tensor() {
		return Invalid, nil, fmt.Errorf("%w: %s cannot make %v", ErrDType, op, dt)
	}
	if err := shape.Check(); err != nil {
		return Invalid, nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	return dt, shape, nil
}

// operandDType is the one dtype of an op's operands. It does not include the first operand of an
// OutLast op, which is a mask.
func operandDType(op Op, info *Info, args []Operand) (DType, error) {
	if info.Out == OutLast {
		if m := args[0].DT; m != Bool && !(args[0].Scalar && m == Invalid) {
			return Invalid, fmt.Errorf("%w: %s needs a bool mask, got %v", ErrDType, op, m)
		}
		args = args[1:]
	}
	in := Invalid
	for i := range args {
		d := args[i].DT
		if args[i].Scalar && d == Invalid {
			continue
		}
		if in != Invalid && d != in {
			return Invalid, fmt.Errorf("%w: %s of %v and %v; use Cast", ErrDType, op, in, d)
		}
		in = d
	}
	if !info.In.Has(in) {
		return Invalid, fmt.Errorf("%w: %s does not take %v", ErrDType, op, in)
	}
	return in, nil
}

func resultDType(op Op, info *Info, in, dt DType) (DType, error) {
	switch info.Out {
	case OutBool:
		return Bool, nil
	case OutAttr:
		if !dt.Tensor() {
			return Invalid, fmt.Errorf("%w: %s to %v", ErrDType, op, dt)
		}
		return dt, nil
	case OutWidth:
		if !sameWidth(in, dt) {
			return Invalid, fmt.Errorf("%w: %s of %v to %v", ErrDType, op, in, dt)
		}
		return dt, nil
	}
	return in, nil
}

// sameWidth reports two dtypes of numbers with equal numbers of bits.
func sameWidth(x, y DType) bool { return Numbers.Has(x) && Numbers.Has(y) && x.Bits() == y.Bits() }

// broadcastAll joins the shapes of the tensor operands.
func broadcastAll(args []Operand) (Shape, error) {
	var s Shape
	have := false
	for i := range args {
		if args[i].Scalar {
			continue
		}
		if !have {
			s, have = args[i].Shape, true
			continue
		}
		t := args[i].Shape
		if s.Equal(t) {
			continue
		}
		r, ok := Broadcast(s, t)
		if !ok {
			return nil, fmt.Errorf("%w: %s do not broadcast", ErrShape, shapeList(args))
		}
		// Two thin operands can span a product that no memory holds.
		if err := r.Check(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrShape, shapeList(args), err)
		}
		s = r
	}
	if !have {
		return nil, fmt.Errorf("%w: no tensor operand", ErrShape)
	}
	return s, nil
}

// shapeList prints "(2,3) and (4)", "(2), (3) and (4)".
func shapeList(args []Operand) string {
	var shapes []Shape
	for _, a := range args {
		if !a.Scalar {
			shapes = append(shapes, a.Shape)
		}
	}
	text := ""
	for i, s := range shapes {
		switch {
		case i == 0:
		case i == len(shapes)-1:
			text += " and "
		default:
			text += ", "
		}
		text += s.String()
	}
	return text
}

func inferShape(op Op, attr *Attr, shape, x Shape) (Shape, error) {
	switch op {
	case Reshape:
		if err := shape.Check(); err != nil {
			return nil, fmt.Errorf("%w: reshape: %w", ErrShape, err)
		}
		if shape.Elems() != x.Elems() {
			return nil, fmt.Errorf("%w: reshape of %v, %d elements, to %v, %d elements", ErrShape, x, x.Elems(), shape, shape.Elems())
		}
		return shape, nil
	case Expand:
		if err := shape.Check(); err != nil {
			return nil, fmt.Errorf("%w: expand: %w", ErrShape, err)
		}
		if r, ok := Broadcast(x, shape); !ok || !r.Equal(shape) {
			return nil, fmt.Errorf("%w: %v does not expand to %v", ErrShape, x, shape)
		}
		return shape, nil
	case Permute:
		return inferPermute(attr, x)
	case Slice:
		return inferSlice(op, attr, shape, x)
	}
	return inferWindow(attr, shape, x)
}

func inferPermute(attr *Attr, x Shape) (Shape, error) {
	if attr == nil || len(attr.Axes) != len(x) {
		return nil, fmt.Errorf("%w: permute of %v needs %d axes", ErrShape, x, len(x))
	}
	r := make(Shape, len(x))
	var seen [MaxRank]bool
	for i, a := range attr.Axes {
		if a < 0 || a >= len(x) || seen[a] {
			return nil, fmt.Errorf("%w: %v is not an order of the %d axes of %v", ErrShape, attr.Axes, len(x), x)
		}
		seen[a] = true
		r[i] = x[a]
	}
	return r, nil
}

func inferSlice(op Op, attr *Attr, shape, x Shape) (Shape, error) {
	if attr == nil || len(attr.Start) != len(x) || len(attr.Step) != len(x) || len(shape) != len(x) {
		return nil, fmt.Errorf("%w: %s of %v needs start, step and extent for %d dims", ErrShape, op, x, len(x))
	}
	for d, n := range shape {
		start, step := attr.Start[d], attr.Step[d]
		if step == 0 {
			return nil, fmt.Errorf("%w: %s of %v: the step in dim %d is 0", ErrShape, op, x, d)
		}
		if n == 0 {
			continue
		}
		// Bounding the step first keeps the last index from overflowing.
		ok := n > 0 && start >= 0 && start < x[d]
		if ok && n > 1 {
			ok = step < x[d] && step > -x[d] && n <= x[d]
			last := start + (n-1)*step
			ok = ok && last >= 0 && last < x[d]
		}
		if !ok {
			return nil, fmt.Errorf("%w: %s of %v: dim %d does not have %d elements from %d on with step %d", ErrShape, op, x, d, n, start, step)
		}
	}
	return shape, nil
}
