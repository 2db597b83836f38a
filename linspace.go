package millrace

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Linspace makes n numbers from start to stop, both included, at equal distances:
// NumPy's and PyTorch's linspace. One number is start. They are computed in dt, in
// Float32 for 16-bit floats, from whichever end is nearer, so that both ends are
// exact and the error of the others is at most two units in the last place of
// the larger end. Floats only, else ErrDType, as are ends that dt cannot hold;
// ends or a distance that are not finite, and a negative n, are ErrShape.
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
	step := (stop - start) / float64(max(n-1, 1))
	switch {
	case n < 0:
		err = shapeErr("%d numbers", n)
	case math.IsNaN(step) || math.IsInf(step, 0):
		err = shapeErr("%v to %v is no finite distance", start, stop)
	case !finiteIn(dt, start) || !finiteIn(dt, stop) || !finiteIn(dt, step):
		err = dtypeErr("%v cannot hold %v to %v", dt, start, stop)
	}
	if err != nil {
		return failedAt(place, op, err)
	}
	wide := dt.Compute()
	at := create(place, op, ir.Iota, wide, []int{n}, 0, ir.FloatBits(wide, 1), 2)
	by := at.MulScalar(step)
	up := by.AddScalar(start)
	left := at.ScalarSub(float64(n - 1))
	back := left.MulScalar(step)
	down := back.ScalarSub(stop)
	first := at.LtScalar(float64(n+1) / 2)
	r := Where(first, up, down)
	done(at, by, up, left, back, down, first)
	return narrowed(r, dt)
}

// finiteIn reports that x rounds to a finite number of a float dtype.
func finiteIn(dt DType, x float64) bool { return !math.IsInf(ir.BitsFloat(dt, ir.FloatBits(dt, x)), 0) }

// narrowed is x, which nobody else has, in dtype dt.
func narrowed(x *Tensor, dt DType) *Tensor {
	if x.DType() == dt {
		return x
	}
	r := x.Cast(dt)
	done(x)
	return r
}
