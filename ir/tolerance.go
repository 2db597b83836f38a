package ir

import "math"

// Tolerance bounds a device that is not exact: |got-want| <= Abs + Rel*|want|.
type Tolerance struct{ Rel, Abs float64 }

// In is the tolerance for results in dtype dt. Rounding to 16 bits can turn a small difference into
// one of a unit in the last place.
func (t Tolerance) In(dt DType) Tolerance {
	if dt.Storage() && dt.IsFloat() && t != (Tolerance{}) {
		f := dt.format()
		t.Rel += math.Ldexp(1, -f.mantissa)
		t.Abs += math.Ldexp(1, 1-f.bias-f.mantissa)
	}
	return t
}

// Plus is the tolerance after one more node, which may have used up its own.
func (t Tolerance) Plus(n *Node) Tolerance {
	own := n.Op.Info().Tol
	return Tolerance{Rel: t.Rel + own.Rel, Abs: t.Abs + own.Abs}
}

// Near reports that a value of a float dtype differs from another by at most the tolerance in that
// dtype. It returns false for other dtypes.
func (t Tolerance) Near(dt DType, got, want uint64) bool {
	if !dt.IsFloat() {
		return false
	}
	g, w, t := BitsFloat(dt, got), BitsFloat(dt, want), t.In(dt)
	return math.Abs(g-w) <= t.Abs+float64(t.Rel*math.Abs(w))
}
