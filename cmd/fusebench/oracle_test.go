package main

import (
	"math"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

func arraysOf(dt millrace.DType) *arrays { return newArrays(dtype{dt}) }

// TestOracleSample checks that only a sample of a costly problem is checked, with the first and
// the last unit.
func TestOracleSample(t *testing.T) {
	o := &oracle{units: 1000, size: 2, cost: oracleCost / 10, unit: func(u int, out []float64) { out[0], out[1] = float64(u), float64(-u) }}
	if n := o.checked(); n != 10 || o.at(0) != 0 || o.at(9) != 999 {
		t.Fatalf("%d units, from %d to %d", n, o.at(0), o.at(9))
	}
	got := make([]float32, o.elements())
	for u := range o.units {
		got[2*u], got[2*u+1] = float32(u), float32(-u)
	}
	if off := worst(o, got); off != 0 {
		t.Errorf("the right result is off by %v", off)
	}
	got[1] = 0.25 // the sample's first unit
	if off := worst(o, got); off != 0.25 {
		t.Errorf("off by %v, want 0.25", off)
	}
	got[1] = float32(math.NaN())
	if off := worst(o, got); !math.IsNaN(off) {
		t.Errorf("a NaN is off by %v", off)
	}
	if off := worst(o, got[1:]); !math.IsNaN(off) {
		t.Errorf("another length is off by %v", off)
	}
}

// TestOracleKept checks that small results are computed once, and are the same as results that
// are not kept.
func TestOracleKept(t *testing.T) {
	calls := 0
	o := &oracle{units: 1, size: 1, cost: 1, unit: func(_ int, out []float64) { calls++; out[0] = 1 }}
	for range 3 {
		worst(o, []float64{1})
	}
	if calls != 1 {
		t.Errorf("computed %d times", calls)
	}
	big := &oracle{units: 2, size: oracleKept / 8, cost: 1, unit: func(u int, out []float64) { out[len(out)-1] += float64(u + 1) }}
	got := make([]float32, big.elements())
	got[big.size-1], got[2*big.size-1] = 1, 2
	if off := worst(big, got); off != 0 {
		t.Errorf("off by %v", off)
	}
}

// TestFurthest checks that an infinity equals only itself.
func TestFurthest(t *testing.T) {
	inf := math.Inf(1)
	if got := furthest([]float32{1, float32(inf)}, []float64{1, inf}); got != 0 {
		t.Errorf("off by %v", got)
	}
	if got := furthest([]float32{float32(inf), 0}, []float64{1, 0}); got != inf {
		t.Errorf("off by %v", got)
	}
}

// TestConvOracle compares with the definition, element by element.
func TestConvOracle(t *testing.T) {
	as := arraysOf(millrace.Float64)
	p, err := convSuite.of("3x3", shape{2, 3, 5, 6}, as)
	if err != nil {
		t.Fatal(err)
	}
	as.fill()
	x, k, b := p.inputs[0], p.inputs[1], p.inputs[2]
	got := make([]float64, p.oracle.elements())
	for n := range 2 {
		for o := range 6 {
			for i := range 5 {
				for j := range 6 {
					sum := b.at(o)
					for c := range 3 {
						for y := range 3 {
							for z := range 3 {
								if h, w := i+y-1, j+z-1; h >= 0 && h < 5 && w >= 0 && w < 6 {
									sum += float64(x.at(((n*3+c)*5+h)*6+w) * k.at(((o*3+c)*3+y)*3+z))
								}
							}
						}
					}
					got[((n*6+o)*5+i)*6+j] = max(0, sum)
				}
			}
		}
	}
	if off := worst(p.oracle, got); !(off < 1e-12) {
		t.Errorf("off by %v", off)
	}
}

// TestArrays checks that variants with the same input share it, and that it is the same every
// time.
func TestArrays(t *testing.T) {
	a, b := arraysOf(millrace.Float32), arraysOf(millrace.Float64)
	x, y := a.normal("x", 2, 3, 4), a.normal("y", 2, 3, 4)
	if a.normal("x", 2, 3, 4) != x || a.normal("x", 2, 12) == x {
		t.Error("arrays are told apart by name and shape")
	}
	wide := b.normal("x", 2, 3, 4)
	a.fill()
	b.fill()
	if x.f32[5] != float32(wide.f64[5]) || x.f32[5] == y.f32[5] || x.bytes() != 48 || wide.bytes() != 96 || x.at(5) != float64(x.f32[5]) {
		t.Errorf("%v, %v, %v", x.f32, y.f32, wide.f64)
	}
	for dt, round := range map[millrace.DType]func(float32) float32{
		millrace.Float16:  func(v float32) float32 { return millrace.NewF16(v).Float32() },
		millrace.BFloat16: func(v float32) float32 { return millrace.NewBF16(v).Float32() },
	} {
		half := arraysOf(dt)
		z := half.normal("x", 2, 3, 4)
		half.fill()
		if z.at(5) != float64(round(x.f32[5])) || z.at(5) == wide.f64[5] || z.bytes() != 24 {
			t.Errorf("%v: %v of %v, %d bytes", dt, z.at(5), x.f32[5], z.bytes())
		}
	}
}

// TestHostMemory checks that every byte is read and copied once, for any number of threads.
func TestHostMemory(t *testing.T) {
	const n = smallCopy + 200
	var sums []uint64
	for _, threads := range []int{1, 3} {
		m := newHostMemory(n, threads)
		clear(m.dst)
		m.copy(n)
		for i, c := range m.dst {
			if c != byte(i) {
				t.Fatalf("%d threads: byte %d is %d", threads, i, c)
			}
		}
		if m.read(n) <= time.Duration(0) {
			t.Error("no time")
		}
		sums = append(sums, m.sum)
	}
	if got := sumWords([]byte{1, 2, 3}); got != 6 || sums[0] != sums[1] {
		t.Errorf("sums %v, of three bytes %d", sums, got)
	}
}
