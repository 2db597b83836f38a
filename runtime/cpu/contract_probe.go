package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// probeContraction runs contractions whose results show what flags for fast
// and wrong arithmetic would do to them: a product at the middle of two
// numbers that a sum far below it tips over, denormals, blocks added in
// another order. Rows and columns repeat, so few results need the oracle.
func probeContraction(run func(*contraction) error) error {
	const tip, half = 0x1p-30, 0x1p-12
	values := map[ir.DType][4]float64{
		ir.Float32: {tip, 1 + half, 0x1p-70, 1e10},
		ir.Float64: {0x1p-60, 1 + 0x1p-27, 0x1p-520, 1e100},
	}
	for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
		// Through panels, few rows, single results, and two blocks of k.
		for _, s := range [][3]int64{{20, 60, 1}, {20, 36, 3}, {1, 70, 26}, {2, 2, 4}, {5, 33, 260}} {
			if err := probeShape(run, dt, values[dt], s[0], s[1], s[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

func probeShape(run func(*contraction) error, dt ir.DType, values [4]float64, m, n, k int64) error {
	size := int64(dt.Size())
	x, y, out := make([]uint64, m*k), make([]uint64, k*n), make([]uint64, m*n)
	at := func(i, p int64) uint64 {
		v := values[(i+p)%4]
		if p > 3 {
			if p%2 == 1 {
				v = -v // signs, so that orders differ
			}
		}
		if dt == ir.Float32 {
			return uint64(math.Float32bits(float32(v)))
		}
		return math.Float64bits(v)
	}
	for p := range k {
		for i := range m {
			storeElement(unsafe.Add(unsafe.Pointer(&x[0]), (i*k+p)*size), int32(size), at(i, p))
		}
		for j := range n {
			storeElement(unsafe.Add(unsafe.Pointer(&y[0]), (p*n+j)*size), int32(size), at(j, p))
		}
	}
	c := &contraction{m: m, n: n, k: k, dt: dt, threads: 1, out: unsafe.Pointer(&out[0]), outRow: n,
		x: side{base: unsafe.Pointer(&x[0]), stride: k, kstride: 1}, y: side{base: unsafe.Pointer(&y[0]), stride: 1, kstride: n}}
	if err := run(c); err != nil {
		return err
	}
	var want [4][4]uint64
	for i := range min(m, 4) {
		for j := range min(n, 4) {
			fold := ir.NewFold(ir.Dot, dt)
			for p := range k {
				fold.AddPair(at(i, p), at(j, p))
			}
			want[i][j] = fold.Result()
		}
	}
	for i := range m {
		for j := range n {
			got := element(unsafe.Add(unsafe.Pointer(&out[0]), (i*n+j)*size), int32(size))
			if w := want[i%4][j%4]; !sameBits(dt, got, w) {
				return fmt.Errorf("a contraction of %v over %d gives %#x, not %#x", dt, k, got, w)
			}
		}
	}
	return nil
}
