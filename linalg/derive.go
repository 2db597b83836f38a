package linalg

import "github.com/millrace-go/millrace"

// This file has the derivatives for autodiff.Custom: those of operands, computed from the operands,
// the results and the derivatives with respect to the results.

// tr transposes every matrix.
func tr(x *tensor) *tensor { return x.Transpose(-1, -2) }

// eye is the unit matrix of x's last dimension.
func eye(x *tensor) *tensor { return millrace.EyeOn(x.Stream(), x.DType(), x.Dim(-1)) }

// diagonal makes a diagonal matrix of every vector of a stack.
func diagonal(x *tensor) *tensor { return x.Unsqueeze(-2).Mul(eye(x)) }

// half is a matrix's lower triangle, with half of its diagonal.
func half(x *tensor) *tensor { return x.Tril(0).Mul(eye(x).MulScalar(-0.5).AddScalar(1)) }

// even is the symmetric part of a matrix.
func even(x *tensor) *tensor { return x.Add(tr(x)).MulScalar(0.5) }

// gaps is the matrix of x[j]-x[i], with ones on its diagonal.
func gaps(x *tensor) *tensor { return x.Unsqueeze(-2).Sub(x.Unsqueeze(-1)).Add(eye(x)) }

// quotient is x/u, but 0 where x and u are 0, and also is 0 if it is not nil. If the loss does not
// use some vectors, their rotation therefore adds nothing, even if values are equal.
func quotient(x, u, also *tensor) *tensor {
	none := x.EqScalar(0).And(u.EqScalar(0))
	if also != nil {
		none = none.And(also.EqScalar(0))
	}
	return millrace.ScalarWhere(none, 0, x.Div(millrace.ScalarWhere(none, 1, u)))
}

// unspread sums over broadcast dimensions.
func unspread(x *tensor, shape []int) *tensor {
	more := x.Rank() - len(shape)
	var axes []int
	for i := range x.Rank() {
		if i < more || shape[i-more] == 1 && x.Dim(i) != 1 {
			axes = append(axes, i)
		}
	}
	if len(axes) == 0 {
		return x
	}
	return x.Sum(axes...).Reshape(shape...)
}

func solveBack(in, out, d []*tensor) []*tensor {
	a, x, g := in[0], out[0], d[0]
	if in[1].Rank() == 1 {
		x, g = x.Unsqueeze(-1), g.Unsqueeze(-1)
	}
	db := Solve(tr(a), g)
	da := db.MatMul(tr(x)).Neg()
	if in[1].Rank() == 1 {
		db = db.Squeeze(-1)
	}
	return []*tensor{unspread(da, a.Shape()), unspread(db, in[1].Shape())}
}

func inverseBack(_, out, d []*tensor) []*tensor {
	x := tr(out[0])
	return []*tensor{x.MatMul(d[0]).MatMul(x).Neg()}
}

// ofNumber is the derivative of a determinant's logarithm, times a number for each matrix.
func ofNumber(a, g *tensor) []*tensor {
	return []*tensor{tr(Inverse(a)).Mul(g.Unsqueeze(-1).Unsqueeze(-1))}
}

// detBack is the transposed inverse times the determinant. Near a singular matrix this product is 0
// times infinity, or has no correct digits; the determinant may also leave the dtype's range. In
// these cases it is the matrix of cofactors, which are products of the other singular values.
func detBack(in, out, d []*tensor) []*tensor {
	a, g := in[0], d[0]
	size := out[0].Abs()
	most := a.Norm2(-1).Prod(-1) // Hadamard's bound of the determinant
	regular := size.Gt(most.MulScalar(0x1p-24)).And(size.GtScalar(leastDet(a))).And(size.IsFinite())
	if ok, err := millrace.Item[bool](regular.All()); err == nil && ok {
		return ofNumber(a, g.Mul(out[0]))
	}
	return []*tensor{cofactors(a).Mul(g.Unsqueeze(-1).Unsqueeze(-1))}
}

// leastDet is the least normal number of a's dtype.
func leastDet(a *tensor) float64 {
	if a.DType() == millrace.Float64 {
		return 0x1p-1022
	}
	return 0x1p-126
}

func slogDetBack(in, _, d []*tensor) []*tensor { return ofNumber(in[0], d[1]) }

func choleskyBack(_, out, d []*tensor) []*tensor {
	l := out[0]
	up := tr(l)
	x := Solve(up, half(up.MatMul(d[0])))
	return []*tensor{even(tr(Solve(up, tr(x))))}
}

func qrBack(in, out, d []*tensor) []*tensor {
	q, r := out[0], out[1]
	if in[0].Dim(-2) < in[0].Dim(-1) {
		return []*tensor{failed("qr", shapeErr("the gradient for %v does not exist: it has more columns than rows", in[0].Shape()), in[0])}
	}
	m := r.MatMul(tr(d[1])).Sub(tr(d[0]).MatMul(q))
	low := half(m)
	g := d[0].Add(q.MatMul(low.Add(tr(low))))
	return []*tensor{tr(Solve(r, tr(g)))}
}

func eighBack(_, out, d []*tensor) []*tensor {
	w, v := out[0], out[1]
	off := eye(w).Neg().AddScalar(1)
	x := quotient(tr(v).MatMul(d[1]).Mul(off), gaps(w), nil).Add(diagonal(d[0]))
	return []*tensor{even(v.MatMul(x).MatMul(tr(v)))}
}

func svdBack(in, out, d []*tensor) []*tensor {
	u, s, vt := out[0], out[1], out[2]
	v, du, dv := tr(vt), d[0], tr(d[2])
	// s[j]²-s[i]² in two factors: squares may overflow or underflow.
	less, more := gaps(s), s.Unsqueeze(-2).Add(s.Unsqueeze(-1))
	off := eye(s).Neg().AddScalar(1)
	turn := func(x, dx *tensor) *tensor { // the effect of a rotation of the singular vectors
		y := tr(x).MatMul(dx).Mul(off)
		return quotient(quotient(y.Sub(tr(y)), less, y), more, y)
	}
	across := s.Unsqueeze(-2)
	core := turn(u, du).Mul(across).Add(turn(v, dv).Mul(s.Unsqueeze(-1))).Add(diagonal(d[1]))
	da := u.MatMul(core).MatMul(vt)
	// The part outside of the space of the singular vectors, which exists for one side at most.
	m, n := in[0].Dim(-2), in[0].Dim(-1)
	if m > n {
		out := quotient(du, across, nil)
		da = da.Add(out.Sub(u.MatMul(tr(u).MatMul(out))).MatMul(vt))
	}
	if n > m {
		out := quotient(dv, across, nil)
		da = da.Add(u.MatMul(tr(out.Sub(v.MatMul(vt.MatMul(out))))))
	}
	return []*tensor{da}
}

// singularValuesBack is svdBack of the values alone.
func singularValuesBack(in, _, d []*tensor) []*tensor {
	u, _, vt := SVD(in[0])
	return []*tensor{u.Mul(d[0].Unsqueeze(-2)).MatMul(vt)}
}

// eigvalshBack is eighBack of the values alone.
func eigvalshBack(in, _, d []*tensor) []*tensor {
	_, v := Eigh(in[0])
	return []*tensor{even(v.Mul(d[0].Unsqueeze(-2)).MatMul(tr(v)))}
}
