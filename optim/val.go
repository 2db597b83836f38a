package optim

import (
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hostapi"
)

// val is a tensor in a formula. Results of its methods belong to temps, which releases intermediate
// values right after an update instead of at the end of the step. If a long step is cut anywhere,
// these values need not be written.
type val struct {
	t *millrace.Tensor
	x *temps
}

// temps are tensors that are released together.
type temps struct{ list []*millrace.Tensor }

// of makes a val of a tensor that temps does not own.
func (x *temps) of(t *millrace.Tensor) val { return val{t, x} }

// own makes a val of a tensor that temps releases.
func (x *temps) own(t *millrace.Tensor) val {
	x.list = append(x.list, t)
	return val{t, x}
}

// keep takes a result out of temps.
func (x *temps) keep(v val) *millrace.Tensor {
	if k := slices.Index(x.list, v.t); k >= 0 {
		x.list = slices.Delete(x.list, k, k+1)
	}
	return v.t
}

// end releases the tensors.
func (x *temps) end() {
	for _, t := range x.list {
		hostapi.Drop(t)
	}
	x.list = x.list[:0]
}

func (v val) add(u val) val            { return v.x.own(v.t.Add(u.t)) }
func (v val) sub(u val) val            { return v.x.own(v.t.Sub(u.t)) }
func (v val) mul(u val) val            { return v.x.own(v.t.Mul(u.t)) }
func (v val) div(u val) val            { return v.x.own(v.t.Div(u.t)) }
func (v val) maximum(u val) val        { return v.x.own(v.t.Maximum(u.t)) }
func (v val) plus(s float64) val       { return v.x.own(v.t.AddScalar(s)) }
func (v val) minus(s float64) val      { return v.x.own(v.t.SubScalar(s)) }
func (v val) times(s float64) val      { return v.x.own(v.t.MulScalar(s)) }
func (v val) over(s float64) val       { return v.x.own(v.t.DivScalar(s)) }
func (v val) from(s float64) val       { return v.x.own(v.t.ScalarSub(s)) } // s - v
func (v val) under(s float64) val      { return v.x.own(v.t.ScalarDiv(s)) } // s / v
func (v val) atMost(s float64) val     { return v.x.own(v.t.MinimumScalar(s)) }
func (v val) clamp(s float64) val      { return v.x.own(v.t.ClampScalar(-s, s)) }
func (v val) neg() val                 { return v.x.own(v.t.Neg()) }
func (v val) sqrt() val                { return v.x.own(v.t.Sqrt()) }
func (v val) sign() val                { return v.x.own(v.t.Sign()) }
func (v val) expm1() val               { return v.x.own(v.t.Expm1()) }
func (v val) norm2() val               { return v.x.own(v.t.Norm2()) }
func (v val) sumOfSquares() val        { return v.mul(v).sum() }
func (v val) sum() val                 { return v.x.own(v.t.Sum()) }
func (v val) at(i int) val             { return v.x.own(v.t.Slice(millrace.At(i))) }
func (v val) slice(lo, hi int) val     { return v.x.own(v.t.Slice(millrace.R(lo, hi))) }
func (v val) reshape(shape ...int) val { return v.x.own(v.t.Reshape(shape...)) }
func (v val) ifElse(y, n val) val      { return v.x.own(millrace.Where(v.t, y.t, n.t)) }
func (v val) and(u val) val            { return v.x.own(v.t.And(u.t)) }
func (v val) not() val                 { return v.x.own(v.t.Not()) }
func (v val) all() val                 { return v.x.own(v.t.All()) }
func (v val) finite() val              { return v.x.own(v.t.IsFinite()) }
func (v val) above(s float64) val      { return v.x.own(v.t.GtScalar(s)) }
func (v val) ifElseOf(y val, s float64) val {
	return v.x.own(millrace.WhereScalar(v.t, y.t, s))
}

// atOne is v where v is 1, and s elsewhere.
func (v val) atOne(s float64) val { return v.x.own(v.t.EqScalar(1)).ifElseOf(v, s) }

// ratio is v/u, or 1 where either is 0.
func (v val) ratio(u val) val { return v.above(0).and(u.above(0)).ifElseOf(v.div(u), 1) }

// cast is v in dtype dt.
func (v val) cast(dt millrace.DType) val {
	if v.t.DType() == dt {
		return v
	}
	return v.x.own(v.t.Cast(dt))
}
