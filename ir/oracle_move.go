package ir

// evalMove copies elements to their places; no number is computed.
func evalMove(n *Node, args []operandValue, out Dense) {
	x := args[0].tensor
	zero, one := make([]int, len(n.Shape)), make([]int, len(n.Shape))
	for d := range one {
		one[d] = 1
	}
	switch n.Op {
	case Pad:
		for i := range out.Shape.Elems() {
			out.Set(i, args[1].scalar.Bits)
		}
		place(out, x, n.Attr.Start, n.Attr.Step)
	case Concat:
		after := make([]int, len(n.Shape))
		after[n.Attr.Axes[0]] = x.Shape[n.Attr.Axes[0]]
		place(out, x, zero, one)
		place(out, args[1].tensor, after, one)
	case Assign:
		place(out, x, zero, one)
		place(out, args[1].tensor, n.Attr.Start, n.Attr.Step)
	}
}

// place writes the elements of x to out, at start and step apart, per dim.
func place(out Dense, x *Dense, start, step []int) {
	point := make([]int, len(x.Shape))
	strides := out.Shape.RowMajor()
	for i := range x.Shape.Elems() {
		unravel(i, x.Shape, point)
		for d := range point {
			point[d] = start[d] + step[d]*point[d]
		}
		out.Set(dot(point, strides), x.At(i))
	}
}

// evalGather reads x at every point of the result, moved along the axis to the index.
func evalGather(n *Node, x, idx *Dense, out Dense) error {
	a := n.Attr.Axes[0]
	point := make([]int, len(n.Shape))
	fromX, fromIdx := broadcastStrides(x.Shape, n.Shape), broadcastStrides(idx.Shape, n.Shape)
	fromX[a] = x.Shape.RowMajor()[a]
	fromIdx[a] = idx.Shape.RowMajor()[a]
	for i := range out.Shape.Elems() {
		unravel(i, n.Shape, point)
		at, ok, err := resolve(n, idx, dot(point, fromIdx), x.Shape[a])
		if err != nil {
			return err
		}
		if !ok {
			continue // an element of NewDense is 0
		}
		point[a] = at
		out.Set(i, x.At(dot(point, fromX)))
	}
	return nil
}

// evalScatter combines the elements of u, in row-major order, with the elements of x that the
// indices name.
func (d Denormals) evalScatter(n *Node, x, idx, u *Dense, out Dense) error {
	a := n.Attr.Axes[0]
	for i := range x.Shape.Elems() {
		out.Set(i, x.At(i))
	}
	point := make([]int, len(n.Shape))
	strides := out.Shape.RowMajor()
	op := n.Attr.Combine.Op()
	for i := range u.Shape.Elems() {
		unravel(i, u.Shape, point)
		at, ok, err := resolve(n, idx, i, x.Shape[a])
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		point[a] = at
		to, bits := dot(point, strides), u.At(i)
		if op != OpInvalid {
			bits = d.Combine(op, n.DT, out.At(to), bits)
		}
		out.Set(to, bits)
	}
	return nil
}

// resolve reads the index at position i of idx, for an axis of size elements, by the node's mode.
// ok is false for an index that is dropped.
func resolve(n *Node, idx *Dense, i, size int) (int, bool, error) {
	at := signExtend(idx.DT, idx.At(i))
	if got, ok := ResolveIndex(n.Attr.Mode, at, size); ok {
		return got, true, nil
	}
	if n.Attr.Mode == IndexDrop {
		return 0, false, nil
	}
	return 0, false, &IndexFault{Op: n.Op, Index: at, At: i, Axis: n.Attr.Axes[0], Size: size}
}

// ResolveIndex returns the element that an index names in an axis of size elements. It returns
// false for an index out of range, which is a fault for IndexError and is dropped for IndexDrop.
// With IndexClamp, and if the axis is not empty, every index names an element.
func ResolveIndex(mode IndexMode, index int64, size int) (int, bool) {
	if mode == IndexClamp && size > 0 {
		index = max(0, min(index, int64(size)-1))
	}
	if index < 0 || index >= int64(size) {
		return 0, false
	}
	return int(index), true
}

// Combine is the element that a scatter by op makes of x when y is scattered to it.
func (d Denormals) Combine(op Op, dt DType, x, y uint64) uint64 {
	return d.Bits(dt, d.EvalOp(op, dt, []DType{dt, dt}, []uint64{d.Bits(dt, x), d.Bits(dt, y)}))
}
