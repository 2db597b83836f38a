package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
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
	c := &Contraction{M: m, N: n, K: k, DT: dt, Threads: 2, Out: Results{Row: n + 1}, Mask: Mask{Row: n + 3},
		X: Side{Stride: k + 3, KStride: 1}, Y: Side{Stride: k + 1, KStride: 1}}
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
		putElement(x, 2*c.X.Stride+k-1, size, bitsOf(0x1.8p40))
		putElement(y, (n-2)*c.Y.Stride+k/2, size, bitsOf(-0x1.8p41))
		large[2], large[-(n-2)] = true, true
	case "none":
		putElement(x, 3*c.X.Stride, size, bitsOf(math.NaN()))
		putElement(y, (n-1)*c.Y.Stride, size, bitsOf(math.Inf(1)))
		large[3], large[-(n-1)] = true, true
	}
	want := make([]byte, m*c.Out.Row*int64(size)+8)
	for i := range want {
		want[i] = 0xa5
	}
	blank := append([]byte(nil), want...)
	naiveContract(c, x, y, want)
	for _, kind := range []MaskKind{ByInf, ByTrue, ByFalse} {
		c.Mask.Kind, c.Mask.Small = kind, kind != ByTrue
		mask := make([]byte, m*c.Mask.Row*int64(size))
		for i := range m {
			for j := range n {
				switch {
				case kind == ByInf && masked(i, j):
					putElement(mask, i*c.Mask.Row+j, size, bitsOf(math.Inf(-1)))
				case kind != ByInf && masked(i, j) == (kind == ByTrue):
					mask[i*c.Mask.Row+j] = 1
				}
			}
		}
		got := make([]byte, len(want))
		c.X.Base, c.Y.Base, c.Out.Base, c.Mask.At = unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), unsafe.Pointer(&got[0]), unsafe.Pointer(&mask[0])
		for name, run := range all {
			copy(got, blank)
			if err := run.contract(c, Memory, Memory, false); err != nil {
				t.Fatal(err)
			}
			left := 0
			for e := range m * c.Out.Row {
				u, v := elementAt(got, e, size), elementAt(want, e, size)
				i, j := e/c.Out.Row, e%c.Out.Row
				if kernels.SameBits(dt, u, v) {
					continue
				}
				if j == n || !masked(i, j) || u != 0 || c.Mask.Small && (large[i] || large[-j]) {
					t.Fatalf("%s, kind %d: element %d, %d is %#x, not %#x", name, kind, i, j, u, v)
				}
				left++
			}
			if name == "go" || name == "c" && !(Source{C: true}).Tiles(dt, false) || m <= 16 || k > blockK || n < 100 && what != "all" {
				continue // these skip nothing, or have few whole panels
			}
			if least := m * n / 4; int64(left) < least && !(c.Mask.Small && len(large) > 0) {
				t.Errorf("%s, kind %d: %d results are left out, at least %d could be", name, kind, left, least)
			}
		}
	}
}
