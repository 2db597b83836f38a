package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// TestContractMask: where the mask is -inf a result may be +0 in place of what it
// is, if that is a small number. All others have the bits of the rule, next to
// operands that are large or none at all too.
func TestContractMask(t *testing.T) {
	all := contractors(t, 2)
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
	x, y, mask := make([]byte, m*(k+3)*int64(size)), make([]byte, n*(k+1)*int64(size)), make([]byte, m*(n+3)*int64(size))
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
	for i := range m {
		for j := range n {
			v := 0.0
			if masked(i, j) {
				v = math.Inf(-1)
			}
			putElement(mask, i*c.maskRow+j, size, bitsOf(v))
		}
	}
	large := map[int64]bool{} // rows and, below 0, columns where nothing may be left out
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
	got := make([]byte, len(want))
	blank := append([]byte(nil), want...)
	naiveContract(c, x, y, want)
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
			if j == n || !masked(i, j) || u != 0 || large[i] || large[-j] {
				t.Fatalf("%s: element %d, %d is %#x, not %#x", name, i, j, u, v)
			}
			left++
		}
		if name == "go" || m <= 16 || k > contractK || n < 100 && what != "all" {
			continue // which do without, or have few whole panels
		}
		if least := m * n / 4; int64(left) < least && what != "none" && what != "large" {
			t.Errorf("%s: %d results are left out, at least %d could be", name, left, least)
		}
	}
}

// TestMaskedBy: a mask is found behind multiplications by numbers, and nowhere
// else.
func TestMaskedBy(t *testing.T) {
	const mul, div = "%3 = mul %0 %2 : float32\n%4 = add %3 %1 : float32", "%3 = div %0 %2 : float32\n%4 = add %1 %3 : float32"
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		body   string
		scalar float32
		found  bool
	}{
		{"%3 = add %0 %1 : float32", nan, true},
		{"%3 = add %1 %0 : float32", nan, true},
		{mul, 0.125, true},
		{mul, -8, true},
		{mul, 0, true},
		{mul, 0x1p38, true},
		{mul, 0x1p39, false},
		{mul, inf, false},
		{mul, nan, false},
		{div, 8, true},
		{div, inf, false},
		{div, 0x1p-38, true},
		{div, 0x1p-39, false},
		{div, 0, false},
		{"%3 = mul %0 %2 : float32\n%4 = mul %3 %2 : float32\n%5 = add %4 %1 : float32", 0x1p20, false},
		{"%3 = div %0 %2 : float32\n%4 = neg %3 : float32\n%5 = add %4 %1 : float32", 8, true},
		{"%3 = div %2 %0 : float32\n%4 = add %3 %1 : float32", 1, false},
		{"%3 = exp %0 : float32\n%4 = add %3 %1 : float32", 1, false},
		{"%3 = mul %0 %1 : float32\n%4 = add %3 %1 : float32", 1, false},
		{"%3 = mul %0 %0 : float32\n%4 = add %3 %1 : float32", 1, false},
		{"%3 = add %0 %2 : float32\n%4 = add %3 %1 : float32", 1, false},
		{"%3 = add %0 %1 : float32\n%4 = add %3 %0 : float32", 1, false},
		{"%3 = sub %0 %1 : float32", 1, false},
		{"%3 = maximum %0 %1 : float32", 1, false},
	} {
		last := strings.Count(c.body, "\n") + 3
		text := "in 0 : float32\nin 1 : float32\nout 2 : float32\nscalar 0 : float32\n" +
			"%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = scalar 0 : float32\n" + c.body + fmt.Sprintf("\nstore 2 %%%d\n", last)
		k, err := codegen.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		mask, found := maskedBy(k, 0, []uint64{uint64(math.Float32bits(c.scalar))})
		if found != c.found || found && mask != 1 {
			t.Errorf("by %v: mask %d, %v, not %v\n%s", c.scalar, mask, found, c.found, text)
		}
	}
}
