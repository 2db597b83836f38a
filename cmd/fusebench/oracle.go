package main

import (
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace"
)

// An oracle computes what a program should give, in float64 and in plain Go.
// The result is cut into units of equal size, in order, which are computed
// alone.
type oracle struct {
	units, size int // size in elements
	// cost of a unit in about multiply-adds: where all together are too costly, a
	// sample of the units is checked.
	cost float64
	unit func(u int, out []float64)

	once sync.Once
	kept [][]float64 // of the units checked, where they are not too large to keep
}

const (
	oracleCost = 2.5e8    // for a check
	oracleKept = 64 << 20 // bytes
)

// elementwise is the oracle of a function of each element.
func elementwise(a *array, f func(float64) float64) *oracle {
	size := a.shape[len(a.shape)-1]
	return &oracle{units: a.shape.len() / size, size: size, cost: 1, unit: func(u int, out []float64) {
		for i := range out {
			out[i] = f(a.at(u*size + i))
		}
	}}
}

func (o *oracle) elements() int { return o.units * o.size }

// checked is how many units are checked: all, or as many as the cost allows, but
// some in any case.
func (o *oracle) checked() int {
	if o.cost*float64(o.units) <= oracleCost {
		return o.units
	}
	return min(o.units, max(8, int(oracleCost/o.cost)))
}

// at is the i-th unit that is checked: they lie evenly, first and last among them.
func (o *oracle) at(i int) int {
	n := o.checked()
	if n == 1 {
		return 0
	}
	return i * (o.units - 1) / (n - 1)
}

// each calls f with every unit that is checked, on all threads.
func (o *oracle) each(f func(i int, want []float64)) {
	if o.checked()*o.size*8 <= oracleKept {
		o.once.Do(func() {
			o.kept = make([][]float64, o.checked())
			o.compute(func(i int, want []float64) { o.kept[i] = append([]float64(nil), want...) })
		})
		for i, want := range o.kept {
			f(i, want)
		}
		return
	}
	o.compute(f)
}

func (o *oracle) compute(f func(i int, want []float64)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		wg.Go(func() {
			want := make([]float64, o.size)
			for {
				i := int(next.Add(1)) - 1
				if i >= o.checked() {
					return
				}
				clear(want)
				o.unit(o.at(i), want)
				f(i, want)
			}
		})
	}
	wg.Wait()
}

// maxError reads y and returns its largest distance from the oracle; NaN where
// one is a number and the other is not.
func (o *oracle) maxError(y *millrace.Tensor) (float64, error) {
	if y.DType() == millrace.Float64 {
		got, err := millrace.Values[float64](y)
		return worst(o, got), err
	}
	got, err := millrace.Values[float32](y)
	return worst(o, got), err
}

func worst[T float32 | float64](o *oracle, got []T) float64 {
	if len(got) != o.elements() {
		return math.NaN()
	}
	var mu sync.Mutex
	top := 0.0
	o.each(func(i int, want []float64) {
		most := furthest(got[o.at(i)*o.size:], want)
		mu.Lock()
		defer mu.Unlock()
		top = math.Max(top, most) // NaN wins
	})
	return top
}

func furthest[T float32 | float64](got []T, want []float64) float64 {
	most := 0.0
	for i, w := range want {
		g := float64(got[i])
		if g == w {
			continue // infinities too
		}
		if d := math.Abs(g - w); !(d <= most) {
			most = d // a NaN stays: no comparison with it holds
		}
	}
	return most
}
