package main

import (
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace"
)

// An oracle computes the right result of a program, in float64 and in plain Go. The result is
// divided into units of equal size, in order. Each unit is computed independently.
type oracle struct {
	units, size int // size in elements
	// cost is about the number of multiply-adds of a unit. If all units together cost too much,
	// only a sample of them is checked.
	cost float64
	unit func(u int, out []float64)

	once sync.Once
	kept [][]float64 // results of the checked units, unless they are too large to keep
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

// checked returns how many units are checked: all, or as many as the cost allows, but at least
// some.
func (o *oracle) checked() int {
	if o.cost*float64(o.units) <= oracleCost {
		return o.units
	}
	return min(o.units, max(8, int(oracleCost/o.cost)))
}

// at returns the number of the i-th checked unit. Checked units have equal distances and include
// the first and the last unit.
func (o *oracle) at(i int) int {
	n := o.checked()
	if n == 1 {
		return 0
	}
	return i * (o.units - 1) / (n - 1)
}

// each calls f with every checked unit, on all threads.
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

// maxError reads y and returns its largest distance from the oracle, or NaN if only one of the
// two is a number.
func (o *oracle) maxError(y *millrace.Tensor) (float64, error) {
	switch y.DType() {
	case millrace.Float64:
		got, err := millrace.Values[float64](y)
		return worst(o, got), err
	case millrace.Float16:
		return worstHalf(o, y, millrace.F16.Float32)
	case millrace.BFloat16:
		return worstHalf(o, y, millrace.BF16.Float32)
	}
	got, err := millrace.Values[float32](y)
	return worst(o, got), err
}

func worstHalf[T millrace.Element](o *oracle, y *millrace.Tensor, float func(T) float32) (float64, error) {
	got, err := millrace.Values[T](y)
	return worst(o, listOf(len(got), func(i int) float32 { return float(got[i]) })), err
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
		top = math.Max(top, most) // a NaN stays
	})
	return top
}

func furthest[T float32 | float64](got []T, want []float64) float64 {
	most := 0.0
	for i, w := range want {
		g := float64(got[i])
		if g == w {
			continue // also equal infinities
		}
		if d := math.Abs(g - w); !(d <= most) {
			most = d // a NaN stays, because no comparison with it holds
		}
	}
	return most
}
