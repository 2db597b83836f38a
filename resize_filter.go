package millrace

import (
	"math"
	"slices"
)

// filter computes m positions from n elements so that every element counts: each position uses
// the elements within its reach.
type filter struct {
	n, m  int
	cubic bool
	wide  float64 // the scale of the weights: n/m, at least 1
	reach float64
}

func newFilter(mode ResizeMode, n, m int) filter {
	f := filter{n: n, m: m, cubic: mode == ResizeCubic, wide: max(float64(n)/float64(m), 1)}
	if f.reach = f.wide; f.cubic {
		f.reach = 2 * f.wide
	}
	return f
}

func filtersOf(mode ResizeMode, in, out []int) (fs []filter) {
	for i, m := range out {
		fs = append(fs, newFilter(mode, in[i], m))
	}
	return fs
}

// large reports a filter whose table would be too large.
func (f filter) large() bool { return f.n != f.m && float64(f.m)*(2*f.reach+2) > maxTable }

// within returns the range of elements that position i uses, from first up to behind, and the
// position's middle among them.
func (f filter) within(i int) (first, behind int, middle float64) {
	middle = float64((float64(i) + 0.5) * float64(f.n) / float64(f.m))
	return max(int(middle-f.reach+0.5), 0), min(int(middle+f.reach+0.5), f.n), middle
}

// weight returns the weight of an element at a distance.
func (f filter) weight(distance float64) float64 {
	x := math.Abs(distance) / f.wide
	if f.cubic && x < 2 {
		return keys(-0.5, x)
	}
	return max(1-x, 0)
}

// table returns, for each position, the elements that it uses and their weights: count of them
// each. If a position has fewer elements within reach, the last one is repeated, and its
// repetitions share its weight. A weight of 0 would not do, because 0 times an infinity is NaN.
func (f filter) table() (at []int32, weights []float64, count int) {
	for i := range f.m {
		first, behind, _ := f.within(i)
		count = max(count, behind-first)
	}
	at, weights = make([]int32, f.m*count), make([]float64, f.m*count)
	for i := range f.m {
		first, behind, middle := f.within(i)
		places, row := at[i*count:(i+1)*count], weights[i*count:(i+1)*count]
		sum := 0.0
		for k := range behind - first {
			places[k] = int32(first + k)
			row[k] = f.weight(float64(first+k) - middle + 0.5)
			sum += row[k]
		}
		for k := range row {
			row[k] /= sum
		}
		last := behind - first - 1
		share := row[last] / float64(count-last)
		for k := last; k < count; k++ {
			places[k], row[k] = places[last], share
		}
	}
	return at, weights, count
}

// filtered resizes along an axis. One kernel gathers, weights and adds the elements.
func (t *Tensor) filtered(axis int, f filter) *Tensor {
	at, weights, count := f.table()
	places := FromSliceOn(t.Stream(), at, f.m, count)
	x := t.Take(places, axis, IndexClamp)
	column := slices.Repeat([]int{1}, x.Rank())
	column[axis], column[axis+1] = f.m, count
	w := floatTable(t, weights, column...)
	parts := x.Mul(w)
	r := parts.Sum(axis + 1)
	done(places, x, w, parts)
	return r
}
