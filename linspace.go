package millrace

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Linspace makes n numbers from start to stop, both included, at equal distances: NumPy's and
// PyTorch's linspace. A single number is start. Each number is computed in dt, or in Float32 for
// 16-bit floats, from the nearer end. The first and the last number are therefore start and stop,
// each rounded to dt once, and the error of the others is at most two units in the last place of
// the larger end. A dtype that is no float is ErrDType, and so are ends that dt cannot hold. Ends
// that are not finite, or a negative n, are ErrShape.
func Linspace(dt DType, start, stop float64, n int) *Tensor {
	return linspace(anywhere{}, "linspace", dt, start, stop, n)
}

// LinspaceOn is [Linspace] in a place.
func LinspaceOn(p Place, dt DType, start, stop float64, n int) *Tensor {
	return linspace(p, "linspace", dt, start, stop, n)
}

func linspace(p Place, op string, dt DType, start, stop float64, n int) *Tensor {
	place, err := placeOf(p)
	if err != nil {
		return failedAt(place, op, err)
	}
	if !dt.IsFloat() {
		return failedAt(place, op, dtypeErr("%v is no float type", dt))
	}
	switch {
	case n < 0:
		err = shapeErr("%d numbers", n)
	case math.IsNaN(start - stop), math.IsInf(start, 0), math.IsInf(stop, 0):
		err = shapeErr("%v to %v is no finite distance", start, stop)
	case !finiteIn(dt, start) || !finiteIn(dt, stop):
		err = dtypeErr("%v cannot hold %v to %v", dt, start, stop)
	}
	if err != nil {
		return failedAt(place, op, err)
	}
	wide := dt.Compute()
	scale, step := spacing(wide, start, stop, n)
	at := create(place, op, ir.Iota, wide, []int{n}, 0, ir.FloatBits(wide, 1), 2)
	by := at.MulScalar(step)
	up := by.AddScalar(endIn(dt, wide, start) * scale)
	left := at.ScalarSub(float64(n - 1))
	back := left.MulScalar(step)
	down := back.ScalarSub(endIn(dt, wide, stop) * scale)
	first := at.LtScalar(float64(n) / 2)
	r := Where(first, up, down)
	done(at, by, up, left, back, down, first)
	if scale != 1 {
		scaled := r
		r = scaled.MulScalar(1 / scale)
		done(scaled)
	}
	return narrowed(r, dt)
}

// spacing returns the distance between neighbours of n numbers from start to stop, times scale, a
// power of two. scale brings numbers that dt cannot compute with into its range: it is a half if
// start and stop are further apart than the greatest number, and a large number if the distance
// is denormal.
func spacing(dt DType, start, stop float64, n int) (scale, step float64) {
	gaps := float64(max(n-1, 1))
	step = (stop - start) / gaps
	least := math.Ldexp(1, -126)
	raised := math.Ldexp(1, 64)
	if dt == Float64 {
		least, raised = math.Ldexp(1, -1022), math.Ldexp(1, 512)
	}
	switch {
	case !finiteIn(dt, stop-start):
		scale = 0.5
	case stop != start && math.Abs(step) < least:
		scale = raised
	default:
		return 1, step
	}
	return scale, (stop*scale - start*scale) / gaps
}

// finiteIn reports that x rounds to a finite number of a float dtype.
func finiteIn(dt DType, x float64) bool { return !math.IsInf(ir.BitsFloat(dt, ir.FloatBits(dt, x)), 0) }

// endIn returns x in a wider dtype. Rounding it from there to dt gives the same as rounding x to
// dt directly, although the wider dtype rounds it first.
func endIn(dt, wide DType, x float64) float64 {
	w, want := ir.BitsFloat(wide, ir.FloatBits(wide, x)), ir.BitsFloat(dt, ir.FloatBits(dt, x))
	if ir.BitsFloat(dt, ir.FloatBits(dt, w)) != want {
		return want
	}
	return w
}

// narrowed returns x in dtype dt. It ends x if that needs a cast, so only the caller may have x.
func narrowed(x *Tensor, dt DType) *Tensor {
	if x.DType() == dt {
		return x
	}
	r := x.Cast(dt)
	done(x)
	return r
}
