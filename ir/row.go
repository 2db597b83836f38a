package ir

// EvalRow is a row op on a whole row of its operands, of dtype dt: one result for a reduction, one
// per element for a scan or a sort. Every tier must agree with it. descending is for sorts. There
// must be one row per operand of the op, all of the same length.
func EvalRow(op Op, descending bool, dt DType, rows ...[]uint64) []uint64 {
	return KeepDenormals.EvalRow(op, descending, dt, rows...)
}

// EvalRow is the function EvalRow with denormals treated as d says. It does not flush the elements
// first.
func (d Denormals) EvalRow(op Op, descending bool, dt DType, rows ...[]uint64) []uint64 {
	x := rows[0]
	switch op.Class() {
	case ClassReduce:
		f := d.NewFold(op, dt)
		f.Add(rows...)
		return []uint64{f.Result()}
	case ClassScan:
		out := make([]uint64, len(x))
		s := d.newScan(op, dt)
		for i := range x {
			out[i] = s.Next(x[i])
		}
		return out
	}
	out := make([]uint64, len(x))
	for i, from := range SortOrder(dt, x, descending) {
		if out[i] = x[from]; op.Info().Position {
			out[i] = uint64(from)
		}
	}
	return out
}
