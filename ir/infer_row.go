package ir

import "fmt"

// checkAxes reports axes that are not sorted, repeated or out of range.
func checkAxes(op Op, attr *Attr, x Shape) error {
	if attr == nil {
		return fmt.Errorf("%w: %s of %v without axes", ErrShape, op, x)
	}
	prev := -1
	for _, a := range attr.Axes {
		if a <= prev || a >= len(x) {
			return fmt.Errorf("%w: %s of %v: bad axes %v", ErrShape, op, x, attr.Axes)
		}
		prev = a
	}
	return nil
}

// checkAxis is checkAxes for ops along one axis, which it returns.
func checkAxis(op Op, attr *Attr, x Shape) (int, error) {
	if err := checkAxes(op, attr, x); err != nil {
		return 0, err
	}
	if len(attr.Axes) != 1 {
		return 0, fmt.Errorf("%w: %s of %v: takes one axis, got %v", ErrShape, op, x, attr.Axes)
	}
	return attr.Axes[0], nil
}

// inferRow is Infer for row ops: reductions, scans and sorts.
func inferRow(op Op, info *Info, attr *Attr, dt DType, args []Operand) (DType, Shape, error) {
	if err := needTensors(op, args); err != nil {
		return Invalid, nil, err
	}
	in, err := operandDType(op, info, args)
	if err != nil {
		return Invalid, nil, err
	}
	out, err := rowDType(op, info, in, dt)
	if err != nil {
		return Invalid, nil, err
	}
	x := args[0].Shape
	for _, y := range args[1:] {
		if !y.Shape.Equal(x) {
			return Invalid, nil, fmt.Errorf("%w: %s of %v and %v: the shapes differ", ErrShape, op, x, y.Shape)
		}
	}
	if info.Class == ClassReduce {
		err = checkAxes(op, attr, x)
	} else {
		_, err = checkAxis(op, attr, x)
	}
	if err != nil {
		return Invalid, nil, err
	}
	if n := rowLength(attr, x); info.Position && n > 0 && uint64(n-1) > greatestBits(out) {
		return Invalid, nil, fmt.Errorf("%w: %s of %v over axes %v: %d positions do not fit %v", ErrShape, op, x, attr.Axes, n, out)
	}
	if info.Class != ClassReduce {
		return out, x, nil
	}
	if info.NeedsElement {
		for _, a := range attr.Axes {
			if x[a] == 0 {
				return Invalid, nil, fmt.Errorf("%w: %s of %v over axis %d, which is empty", ErrShape, op, x, a)
			}
		}
	}
	r := reducedShape(attr, x)
	// Without the empty axis, which gave x no elements, the shape may be too large.
	if err := r.Check(); err != nil {
		return Invalid, nil, fmt.Errorf("%w: %s of %v over axes %v: %w", ErrShape, op, x, attr.Axes, err)
	}
	return out, r, nil
}

// rowDType is the result's dtype of a row op on elements of dtype in; dt is the dtype that the call
// requests.
func rowDType(op Op, info *Info, in, dt DType) (DType, error) {
	if !info.Position {
		return in, nil
	}
	if !IndexDTypes.Has(dt) {
		return Invalid, fmt.Errorf("%w: %s gives positions as int32 or int64, not %v", ErrDType, op, dt)
	}
	return dt, nil
}

// rowLength is the number of elements in a row along the axes, 0 if the shape has no elements.
func rowLength(attr *Attr, x Shape) int {
	if x.Elems() == 0 {
		return 0
	}
	n := 1
	for _, a := range attr.Axes {
		n *= x[a]
	}
	return n
}

// reducedShape removes the axes from x, or keeps them with size 1.
func reducedShape(attr *Attr, x Shape) Shape {
	r := make(Shape, 0, len(x))
	next := 0
	for d, n := range x {
		switch {
		case next == len(attr.Axes) || attr.Axes[next] != d:
			r = append(r, n)
		case attr.Keep:
			r = append(r, 1)
			next++
		default:
			next++
		}
	}
	return r
}

// inferWindow checks that the windows of the requested shape are within x: dim a of size n becomes
// shape[a] windows of shape[a+1] elements.
func inferWindow(attr *Attr, shape, x Shape) (Shape, error) {
	a, err := checkAxis(Window, attr, x)
	if err != nil {
		return nil, err
	}
	if len(attr.Step) != 2 || len(shape) != len(x)+1 {
		return nil, fmt.Errorf("%w: window of %v needs a stride, a dilation and a shape of rank %d, got %v and %v", ErrShape, x, len(x)+1, attr.Step, shape)
	}
	if err := shape.Check(); err != nil {
		return nil, fmt.Errorf("%w: window: %w", ErrShape, err)
	}
	for d, n := range x {
		at := d
		if d > a {
			at++
		}
		if d != a && shape[at] != n {
			return nil, fmt.Errorf("%w: window of %v along axis %d cannot have shape %v", ErrShape, x, a, shape)
		}
	}
	out, k, stride, dilation := shape[a], shape[a+1], attr.Step[0], attr.Step[1]
	if stride <= 0 || dilation <= 0 {
		return nil, fmt.Errorf("%w: window of %v: stride %d and dilation %d must be positive", ErrShape, x, stride, dilation)
	}
	if out == 0 || k == 0 {
		return shape, nil
	}
	// Divisions, so that no product overflows.
	n := x[a]
	fits := n > 0 && (k == 1 || dilation <= (n-1)/(k-1))
	if left := n - 1 - (k-1)*min(dilation, n); fits && out > 1 {
		fits = stride <= left/(out-1)
	}
	if !fits {
		return nil, fmt.Errorf("%w: window of %v: axis %d has no %d windows of %d, stride %d, dilation %d", ErrShape, x, a, out, k, stride, dilation)
	}
	return shape, nil
}
