package millrace

import (
	"math"
	"slices"
)

// Median is the middle one of the sorted elements along the axes, which it removes, or of all
// elements if no axis is given: NumPy's median. For an even number of elements it is the mean of
// the middle two. It is [Tensor.Quantile] of 0.5.
func (t *Tensor) Median(axes ...int) *Tensor { return t.quantile("median", 0.5, axes, false) }

// MedianKeep is [Tensor.Median] with the axes kept as dimensions of size 1.
func (t *Tensor) MedianKeep(axes ...int) *Tensor { return t.quantile("median", 0.5, axes, true) }

// Quantile is the number below which a share q of the elements along the axes is: NumPy's and
// PyTorch's quantile with the linear method. It removes the axes; if none is given, it is over
// all elements. Of n sorted elements it is the one at position q·(n-1). Between two elements, it
// is their mean, weighted by nearness, and never outside of the two. It is NaN if an element is
// NaN. t has floats, else ErrDType. A q outside [0, 1] is ErrShape, and so are no elements and an
// axis that does not exist or is given twice.
func (t *Tensor) Quantile(q float64, axes ...int) *Tensor {
	return t.quantile("quantile", q, axes, false)
}

// QuantileKeep is [Tensor.Quantile] with the axes kept as dimensions of size 1.
func (t *Tensor) QuantileKeep(q float64, axes ...int) *Tensor {
	return t.quantile("quantile", q, axes, true)
}

func (t *Tensor) quantile(name string, q float64, axes []int, keep bool) *Tensor {
	return overRows(name, t, axes, func(x *Tensor, list []int) *Tensor {
		n := int(count(x, list))
		if !(q >= 0 && q <= 1) || n == 0 {
			return failed(name, shapeErr("share %v of %d elements", q, n), x)
		}
		rows := x.rowsOf(list)
		sorted := rows.Sort(-1)
		column := func(i int) *Tensor {
			ranges := slices.Repeat([]Range{All}, sorted.Rank())
			ranges[len(ranges)-1] = At(i)
			return sorted.Slice(ranges...)
		}
		place := q * float64(n-1)
		low := min(int(place), n-1)
		share := place - math.Floor(place)
		r := column(low)
		if share > 0 {
			a, b := r, column(low+1)
			r = between(a, b, share)
			done(a, b)
		}
		last := column(n - 1) // NaN is sorted to the end
		nan := last.IsNaN()
		y := Where(nan, last, r)
		done(rows, sorted, r, last, nan)
		if !keep {
			return y
		}
		kept := slices.Clone(x.shape())
		for _, a := range list {
			kept[a] = 1
		}
		k := y.Reshape(kept...)
		done(y)
		return k
	})
}

// between returns a·(1-share) + b·share for a ≤ b, never a number outside of the two.
func between(a, b *Tensor, share float64) *Tensor {
	if followed(a) {
		return whole("between", "quantile", share, func(in []*Tensor) *Tensor { return between(in[0], in[1], share) }, a, b)
	}
	// Do not add a share of the difference to a: for two infinities the difference is NaN.
	part, rest := a.MulScalar(1-share), b.MulScalar(share)
	mean := part.Add(rest)
	// The products and their sum are rounded, so the mean may be slightly outside of the two
	// numbers.
	above := mean.Maximum(a)
	within := above.Minimum(b)
	equal := a.Eq(b)
	r := Where(equal, a, within)
	done(part, rest, mean, above, within, equal)
	return r
}

// rowsOf merges the axes into one dimension, the last.
func (t *Tensor) rowsOf(axes []int) *Tensor {
	var order, shape []int
	n := 1
	for d, size := range t.shape() {
		if slices.Contains(axes, d) {
			n *= size
			continue
		}
		order, shape = append(order, d), append(shape, size)
	}
	moved := t.Permute(append(order, axes...)...)
	r := moved.Reshape(append(shape, n)...)
	done(moved)
	return r
}
