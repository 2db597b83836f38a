package ir

// evalReduce collects the row of every result. It walks the operands in row-major order, so the
// elements of a row are in the order of their index over the reduced axes.
func (d Denormals) evalReduce(n *Node, args []operandValue, out Dense) {
	x := args[0].tensor
	// Reduced axes get stride 0; the result's strides do not depend on whether they are kept as
	// size 1.
	strides := make([]int, len(x.Shape))
	reduced := make([]bool, len(x.Shape))
	for _, a := range n.Attr.Axes {
		reduced[a] = true
	}
	step := 1
	for d := len(x.Shape) - 1; d >= 0; d-- {
		if !reduced[d] {
			strides[d] = step
			step *= x.Shape[d]
		}
	}
	rows := make([][][]uint64, out.Shape.Elems()) // per result: a row of each operand
	for i := range rows {
		rows[i] = make([][]uint64, len(args))
	}
	point := make([]int, len(x.Shape))
	for i := range x.Shape.Elems() {
		unravel(i, x.Shape, point)
		r := rows[dot(point, strides)]
		for j := range args {
			r[j] = append(r[j], args[j].tensor.At(i))
		}
	}
	for i, r := range rows {
		out.Set(i, d.evalRow(n.Op, false, x.DT, n.DT, r...)[0])
	}
}

// evalAlong applies a scan or a sort to each row along its axis.
func (d Denormals) evalAlong(n *Node, x *Dense, out Dense) {
	a := n.Attr.Axes[0]
	stride := 1 // between neighbours of a row
	for _, d := range n.Shape[a+1:] {
		stride *= d
	}
	row := make([]uint64, n.Shape[a])
	for i := range x.Shape.Elems() {
		if i/stride%n.Shape[a] != 0 {
			continue // not the first of its row
		}
		for j := range row {
			row[j] = x.At(i + j*stride)
		}
		for j, bits := range d.evalRow(n.Op, n.Attr.Descending, x.DT, n.DT, row) {
			out.Set(i+j*stride, bits)
		}
	}
}

// evalRow is EvalRow of an op as a program calls it.
func (d Denormals) evalRow(op Op, descending bool, dt, result DType, rows ...[]uint64) []uint64 {
	if !d.Computes(op) {
		return d.EvalRow(op, descending, dt, rows...)
	}
	for _, row := range rows {
		d.flushRow(dt, row)
	}
	out := d.EvalRow(op, descending, dt, rows...)
	d.flushRow(result, out)
	return out
}
