package ir

// EvalRow is a row op on a whole row of its operands, of dtype dt: one result
// for a reduction, as many as the row has elements for a scan or a sort. It is
// what every tier must agree with. descending is for sorts. The rows must be as
// many as the op's arity, and of one length.
func EvalRow(op Op, descending bool, dt DType, rows ...[]uint64) []uint64 {
	return KeepDenormals.EvalRow(op, descending, dt, rows...)
}

// EvalRow is the function of that name where denormals are treated as d says. The
// elements are taken as they are.
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
