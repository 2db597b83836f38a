package main

import (
	"math"
	"runtime"
	"sync"
)

// expected is the result of a workload, computed in float64 and in plain Go, at some or all of
// its elements.
type expected struct {
	size int   // elements of the result
	at   []int // those that are known; nil for all
	want []float64
	// against holds the numbers by which the elements' errors are divided; nil means the elements
	// themselves. For a sum it is the sum of magnitudes.
	against []float64
}

// split calls f with parts of 0 to n, on all threads.
func split(n int, f func(lo, hi int)) {
	parts := min(runtime.GOMAXPROCS(0), n)
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() { f(n*i/parts, n*(i+1)/parts) })
	}
	wg.Wait()
}

func elementwise(f func(float64) float64) func([]input) expected {
	return func(in []input) expected {
		x := in[0].data
		want := make([]float64, len(x))
		split(len(x), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				want[i] = f(float64(x[i]))
			}
		})
		return expected{size: len(x), want: want}
	}
}

func gelu(erf func(float64) float64) func(float64) float64 {
	return func(x float64) float64 { return 0.5 * x * (1 + erf(x/math.Sqrt2)) }
}

func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// customErf is formula 7.1.26 of Abramowitz and Stegun, which is off by 1.5e-7 at
// most.
func customErf(x float64) float64 {
	t := 1 / (1 + 0.3275911*math.Abs(x))
	poly := t * (0.254829592 + t*(-0.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429))))
	return math.Copysign(1-poly*math.Exp(-x*x), x)
}

// lines calls f with the place of the first element of every line along an axis,
// and with how far its elements are apart.
func lines(s shape, axis int, f func(first, step int)) {
	inner := s[axis+1:].len()
	split(s.len()/s[axis], func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f(i/inner*inner*s[axis]+i%inner, inner)
		}
	})
}

func softmaxOver(axis int) func([]input) expected {
	return func(in []input) expected {
		x, n := in[0].data, in[0].shape[axis]
		want := make([]float64, len(x))
		lines(in[0].shape, axis, func(first, step int) {
			top, sum := math.Inf(-1), 0.0
			for i := range n {
				top = max(top, float64(x[first+i*step]))
			}
			for i := range n {
				e := math.Exp(float64(x[first+i*step]) - top)
				want[first+i*step] = e
				sum += e
			}
			for i := range n {
				want[first+i*step] /= sum
			}
		})
		return expected{size: len(x), want: want}
	}
}

func layerNorm(in []input) expected {
	x, weight, bias, s := in[0].data, in[1].data, in[2].data, in[0].shape
	n := s[len(s)-1]
	want := make([]float64, len(x))
	lines(s, len(s)-1, func(first, _ int) {
		row, mean, variance := x[first:first+n], 0.0, 0.0
		for _, v := range row {
			mean += float64(v) / float64(n)
		}
		for _, v := range row {
			variance += (float64(v) - mean) * (float64(v) - mean) / float64(n)
		}
		for i, v := range row {
			want[first+i] = (float64(v)-mean)/math.Sqrt(variance+layerNormEps)*float64(weight[i]) + float64(bias[i])
		}
	})
	return expected{size: len(x), want: want}
}

func sumAll(in []input) expected {
	sum, magnitude := 0.0, 0.0
	for _, v := range in[0].data {
		sum += float64(v)
		magnitude += math.Abs(float64(v))
	}
	return expected{size: 1, want: []float64{sum}, against: []float64{magnitude}}
}

func sumFirst(in []input) expected {
	s := in[0].shape
	n := s[1:].len()
	e := expected{size: n, want: make([]float64, n), against: make([]float64, n)}
	split(n, func(lo, hi int) {
		for row := range s[0] {
			for i := lo; i < hi; i++ {
				v := float64(in[0].data[row*n+i])
				e.want[i] += v
				e.against[i] += math.Abs(v)
			}
		}
	})
	return e
}

// productRows are checked of a product, evenly, the first and last among them.
const productRows = 64

func product(in []input) expected {
	m, k, n := in[0].shape[0], in[0].shape[1], in[1].shape[1]
	rows := min(productRows, m)
	e := expected{size: m * n, at: make([]int, rows*n), want: make([]float64, rows*n)}
	split(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := r * (m - 1) / max(rows-1, 1)
			out := e.want[r*n : (r+1)*n]
			for i := range k {
				f := float64(in[0].data[row*k+i])
				for j, v := range in[1].data[i*n : (i+1)*n] {
					out[j] += f * float64(v)
				}
			}
			for j := range n {
				e.at[r*n+j] = row*n + j
			}
		}
	})
	return e
}

func chainOf(step int) func([]input) expected {
	k := float64(step%1000+1) * 1e-6
	return elementwise(func(x float64) float64 {
		for i := range 20 {
			if i%2 == 0 {
				x *= 1 + k*float64(i%7-3)
			} else {
				x += k * float64(i+1)
			}
		}
		return x
	})
}

// furthest is the largest error of a result, as a share of what errors are
// measured against; NaN where a number is none, or there are more or fewer.
func (e expected) furthest(got []float32, floor float64) float64 {
	if len(got) != e.size {
		return math.NaN()
	}
	worst := 0.0
	for i, want := range e.want {
		at := i
		if e.at != nil {
			at = e.at[i]
		}
		against := math.Abs(want)
		if e.against != nil {
			against = e.against[i]
		}
		if off := math.Abs(float64(got[at])-want) / max(against, floor); !(off <= worst) {
			worst = off // a NaN stays: no comparison with it holds
		}
	}
	return worst
}
