package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// TestContractMask checks that a masked result is the exact one or +0, with maskSmall only if the
// exact one is a small number. All other results have the exact bits, also next to operands that
// are large or not numbers.
func TestContractMask(t *testing.T) {
	all := contractors(2)
	for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
		for _, s := range [][3]int64{{60, 300, 24}, {84, 1030, 64}, {200, 160, 256}, {50, 200, 300}, {5, 40, 30}, {40, 20, 30}, {60, 170, 40}} {
			for _, what := range []string{"causal", "padding", "band", "all", "large", "none"} {
				t.Run(fmt.Sprintf("%v/%v/%s", dt, s, what), func(t *testing.T) { checkContractMask(t, all, dt, s[0], s[1], s[2], what) })
			}
		}
	}
}

func checkContractMask(t *testing.T, all map[string]contractor, dt ir.DType, m, n, k int64, what string) {
	rng := rand.New(rand.NewPCG(15, uint64(m)))
	size := dt.Size()
	bitsOf := func(f float64) uint64 {
		if dt == ir.Float32 {
			return uint64(math.Float32bits(float32(f)))
		}
		return math.Float64bits(f)
	}
	c := &contraction{m: m, n: n, k: k, dt: dt, threads: 2, outRow: n + 1, maskRow: n + 3,
		x: side{stride: k + 3, kstride: 1}, y: side{stride: k + 1, kstride: 1}}
	x, y := make([]byte, m*(k+3)*int64(size)), make([]byte, n*(k+1)*int64(size))
	for i := range int64(len(x) / size) {
		putElement(x, i, size, bitsOf(rng.NormFloat64()))
	}
	for i := range int64(len(y) / size) {
		putElement(y, i, size, bitsOf(rng.NormFloat64()))
	}
	masked := func(i, j int64) bool {
		switch what {
		case "padding":
			return j >= n/3
		case "all", "large", "none":
			return true
		case "band":
			return j < i*n/m-20 || j > i*n/m+20
		}
		return j*m > i*n
	}
	large := map[int64]bool{} // rows, and columns as negative numbers, in which a mask of small numbers may skip nothing
	switch what {
	case "large":
		putElement(x, 2*c.x.stride+k-1, size, bitsOf(0x1.8p40))
		putElement(y, (n-2)*c.y.stride+k/2, size, bitsOf(-0x1.8p41))
		large[2], large[-(n-2)] = true, true
	case "none":
		putElement(x, 3*c.x.stride, size, bitsOf(math.NaN()))
		putElement(y, (n-1)*c.y.stride, size, bitsOf(math.Inf(1)))
		large[3], large[-(n-1)] = true, true
	}
	want := make([]byte, m*c.outRow*int64(size)+8)
	for i := range want {
		want[i] = 0xa5
	}
	blank := append([]byte(nil), want...)
	naiveContract(c, x, y, want)
	for _, kind := range []maskKind{maskInf, maskTrue, maskFalse} {
		c.maskKind, c.maskSmall = kind, kind != maskTrue
		mask := make([]byte, m*c.maskRow*int64(size))
		for i := range m {
			for j := range n {
				switch {
				case kind == maskInf && masked(i, j):
					putElement(mask, i*c.maskRow+j, size, bitsOf(math.Inf(-1)))
				case kind != maskInf && masked(i, j) == (kind == maskTrue):
					mask[i*c.maskRow+j] = 1
				}
			}
		}
		got := make([]byte, len(want))
		c.x.base, c.y.base, c.out, c.mask = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&got[0]), unsafe.Pointer(&mask[0])
		for name, run := range all {
			copy(got, blank)
			if err := run.contract(c, sideMem, sideMem, false); err != nil {
				t.Fatal(err)
			}
			left := 0
			for e := range m * c.outRow {
				u, v := elementAt(got, e, size), elementAt(want, e, size)
				i, j := e/c.outRow, e%c.outRow
				if sameBits(dt, u, v) {
					continue
				}
				if j == n || !masked(i, j) || u != 0 || c.maskSmall && (large[i] || large[-j]) {
					t.Fatalf("%s, kind %d: element %d, %d is %#x, not %#x", name, kind, i, j, u, v)
				}
				left++
			}
			if name == "go" || name == "c" && !(dotSource{c: true}).tiles(dt, false) || m <= 16 || k > contractK || n < 100 && what != "all" {
				continue // these skip nothing, or have few whole panels
			}
			if least := m * n / 4; int64(left) < least && !(c.maskSmall && len(large) > 0) {
				t.Errorf("%s, kind %d: %d results are left out, at least %d could be", name, kind, left, least)
			}
		}
	}
}
