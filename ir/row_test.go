package ir

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// row reads literals.
func row(t *testing.T, dt DType, literals string) []uint64 {
	t.Helper()
	var out []uint64
	for _, w := range strings.Fields(literals) {
		bits, err := ParseBits(dt, w)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bits)
	}
	return out
}

func sameRow(dt DType, a, b []uint64) bool {
	return slices.EqualFunc(a, b, func(x, y uint64) bool { return SameValue(dt, x, y) })
}

func TestEvalRow(t *testing.T) {
	for _, c := range []struct {
		name string
		op   Op
		dt   DType
		in   string
		out  DType
		want string
	}{
		{"prod", Prod, Float32, "2 3 -4", Float32, "-24"},
		{"prod of none", Prod, Float32, "", Float32, "1"},
		{"prod of no integers", Prod, Int8, "", Int8, "1"},
		{"prod keeps -0", Prod, Float32, "-0", Float32, "-0"},
		{"prod wraps", Prod, Uint8, "16 17", Uint8, "16"},
		{"prod of inf and 0", Prod, Float64, "inf 0", Float64, "nan"},
		{"min", Min, Float32, "3 -2 5", Float32, "-2"},
		{"min prefers -0", Min, Float32, "0 -0 0", Float32, "-0"},
		{"min of nan", Min, Float64, "1 nan -inf", Float64, "nan"},
		{"min of inf", Min, Float32, "inf inf", Float32, "inf"},
		{"min of int", Min, Int32, "2147483647 -2147483648", Int32, "-2147483648"},
		{"min unsigned", Min, Uint8, "200 3 255", Uint8, "3"},
		{"min of the greatest", Min, Int64, "9223372036854775807", Int64, "9223372036854775807"},
		{"max of half", Max, Float16, "-inf -3 2", Float16, "2"},
		{"any", Any, Bool, "false true false", Bool, "true"},
		{"any of none", Any, Bool, "", Bool, "false"},
		{"any of false", Any, Bool, "false false", Bool, "false"},
		{"all", All, Bool, "true true false", Bool, "false"},
		{"all of none", All, Bool, "", Bool, "true"},
		{"argmax", ArgMax, Float32, "1 5 3 5", Int64, "1"},
		{"argmax of nan", ArgMax, Float32, "1 inf nan 7 nan", Int64, "2"},
		{"argmax of negative nan", ArgMax, Float32, "1 nan:0xffc00000 nan", Int64, "1"},
		{"argmax of zeros", ArgMax, Float32, "-0 0 0", Int64, "1"},
		{"argmax of -inf", ArgMax, Float64, "-inf -inf", Int64, "0"},
		{"argmax of int", ArgMax, Int32, "-5 -2 -2", Int64, "1"},
		{"argmax unsigned", ArgMax, Uint8, "3 200", Int64, "1"},
		{"argmin", ArgMin, Float32, "4 -1 2 -1", Int64, "1"},
		{"argmin of nan", ArgMin, Float32, "-inf nan", Int64, "1"},
		{"argmin of zeros", ArgMin, Float32, "0 -0 -0", Int64, "1"},
		{"argmin of int", ArgMin, Int64, "3 -9223372036854775808 -1", Int64, "1"},
		{"argmin of the greatest", ArgMin, Uint8, "255 255", Int64, "0"},
		{"argmin of bfloat16", ArgMin, BFloat16, "1 -2 -3", Int64, "2"},
		{"cumsum", CumSum, Float32, "1 2 3 -6", Float32, "1 3 6 0"},
		{"cumsum keeps -0", CumSum, Float32, "-0 -0 0", Float32, "-0 -0 0"},
		{"cumsum after nan", CumSum, Float32, "1 nan 2", Float32, "1 nan nan"},
		{"cumsum wraps", CumSum, Uint8, "200 100 1", Uint8, "200 44 45"},
		{"cumsum rounds what it shows", CumSum, Float16, "2048 1 1", Float16, "2048 2048 2050"},
		{"cumsum of none", CumSum, Float32, "", Float32, ""},
		{"cumprod", CumProd, Int32, "2 3 -4", Int32, "2 6 -24"},
		{"cummax", CumMax, Float32, "-inf -0 0 -1 nan 3", Float32, "-inf -0 0 0 nan nan"},
		{"cummin", CumMin, Float32, "2 0 -0 5", Float32, "2 0 -0 -0"},
		{"sort", Sort, Float32, "nan 1 -0 -inf 0 inf nan:0xffc00000 -1", Float32, "-inf -1 -0 0 1 inf nan nan"},
		{"sort int", Sort, Int8, "3 -128 127 -1", Int8, "-128 -1 3 127"},
		{"sort unsigned", Sort, Uint8, "200 3 255 0", Uint8, "0 3 200 255"},
		{"sort none", Sort, Int32, "", Int32, ""},
		{"argsort is stable", ArgSort, Float32, "2 1 2 nan 1 nan", Int64, "1 4 0 2 3 5"},
		{"argsort of zeros", ArgSort, Float64, "0 -0 0 -0", Int64, "1 3 0 2"},
	} {
		got := EvalRow(c.op, false, c.dt, row(t, c.dt, c.in))
		if want := row(t, c.out, c.want); !sameRow(c.out, got, want) {
			t.Errorf("%s: got %#x, want %#x", c.name, got, want)
		}
	}
}

func TestSortDescending(t *testing.T) {
	in := row(t, Float32, "nan 1 -0 -inf 0 inf 1")
	if got, want := EvalRow(Sort, true, Float32, in), row(t, Float32, "inf 1 1 0 -0 -inf nan"); !sameRow(Float32, got, want) {
		t.Errorf("sorted %#x, want %#x", got, want)
	}
	if got, want := EvalRow(ArgSort, true, Float32, in), []uint64{5, 1, 6, 4, 2, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	ints := row(t, Int64, "1 -9223372036854775808 9223372036854775807 1")
	if got, want := EvalRow(ArgSort, true, Int64, ints), []uint64{2, 0, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("order of integers %v, want %v", got, want)
	}
}

// Positions are found across blocks and lanes, and the first of equals wins.
func TestArgMaxAcrossBlocks(t *testing.T) {
	const n = 3*FoldBlock + 5
	x := make([]uint64, n)
	for _, at := range []int{FoldLanes, FoldBlock - 1, FoldBlock, 2*FoldBlock + 3, n - 1} {
		clear(x)
		x[at], x[n-1] = 7, 7
		if got := EvalRow(ArgMax, false, Int32, x)[0]; got != uint64(at) {
			t.Errorf("got %d, want %d", got, at)
		}
	}
}

func TestDotEdges(t *testing.T) {
	for _, c := range []struct {
		name       string
		dt         DType
		x, y, want string
	}{
		{"none", Float32, "", "", "0"},
		{"no integers", Int32, "", "", "0"},
		{"one", Float32, "3", "-2", "-6"},
		{"-0 becomes +0", Float32, "-0", "5", "0"},
		{"a product that vanishes below 0 becomes +0", Float32, "-1e-30", "1e-30", "0"},
		{"nan", Float32, "1 nan", "2 0", "nan"},
		{"inf times 0", Float64, "inf", "0", "nan"},
		// The last product alone rounds to 1 and would give 0: a chain of fused multiply-adds does
		// not round it.
		{"fused", Float32, "1 1.00000011920928955078125", "-1 0.99999988079071044921875", "-1.4210854715202004e-14"},
		{"wraps", Int32, "65536 1", "65536 7", "7"},
		{"narrow integers wrap once", Int8, "100 100", "100 2", "-40"},
		{"half is rounded once", Float16, "2048 1 1", "1 1 1", "2050"},
	} {
		x, y := row(t, c.dt, c.x), row(t, c.dt, c.y)
		got := EvalRow(Dot, false, c.dt, x, y)
		if want := row(t, c.dt, c.want); !sameRow(c.dt, got, want) {
			t.Errorf("%s: got %s, want %s", c.name, FormatBits(c.dt, got[0]), c.want)
		}
	}
}

// noise has numbers of many magnitudes, so that sums depend on the order.
func noise(n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = math.Sin(float64(i)*1.7) * math.Exp2(float64(i%40-20))
	}
	return xs
}

func bits64(xs []float64) []uint64 {
	out := make([]uint64, len(xs))
	for i, x := range xs {
		out[i] = math.Float64bits(x)
	}
	return out
}

// TestDotOrder compares contractions with the promised order, written out.
func TestDotOrder(t *testing.T) {
	for _, n := range []int{1, 255, 256, 257, 512, 600} {
		x := noise(n)
		var total float64
		for b := 0; b < n; b += 256 {
			var block float64
			for i := b; i < min(b+256, n); i++ {
				block = math.FMA(x[i], x[n-1-i], block)
			}
			total += block
		}
		y := slices.Clone(x)
		slices.Reverse(y)
		if got := EvalRow(Dot, false, Float64, bits64(x), bits64(y))[0]; got != math.Float64bits(total) {
			t.Errorf("n=%d: got %v, want %v", n, math.Float64frombits(got), total)
		}
	}
	// Small enough to compute by hand: 2^53 and then 256 ones. In one chain each 1 is lost; the
	// ones of the second block are not.
	x := make([]float64, 257)
	x[0] = 1 << 53
	for i := range x[1:] {
		x[1+i] = 1
	}
	ones := slices.Repeat([]float64{1}, 257)
	x = append(x, 1) // the second block: 1 + 1
	ones = append(ones, 1)
	if got := EvalRow(Dot, false, Float64, bits64(x), bits64(ones))[0]; got != math.Float64bits(1<<53+2) {
		t.Errorf("got %v", math.Float64frombits(got))
	}
}

// TestScanOrder compares scans with the promised order, written out.
func TestScanOrder(t *testing.T) {
	x := noise(600)
	want := make([]float64, len(x))
	var offset float64
	for b := 0; b < len(x); b += 256 {
		running := x[b]
		for i := b; i < min(b+256, len(x)); i++ {
			if i > b {
				running += x[i]
			}
			if want[i] = running; b > 0 {
				want[i] = offset + running
			}
		}
		offset = want[min(b+255, len(x)-1)]
	}
	got := EvalRow(CumSum, false, Float64, bits64(x))
	for i := range got {
		if got[i] != math.Float64bits(want[i]) {
			t.Fatalf("element %d: %v, want %v", i, math.Float64frombits(got[i]), want[i])
		}
	}
	// By hand: 2^53 and 255 zeros fill the first block, then ones follow. In one chain every 1
	// would be lost; a block adds them first.
	x = make([]float64, 600)
	x[0] = 1 << 53
	for i := 256; i < 600; i++ {
		x[i] = 1
	}
	got = EvalRow(CumSum, false, Float64, bits64(x))
	for i, want := range map[int]float64{0: 1 << 53, 255: 1 << 53, 257: 1<<53 + 2, 511: 1<<53 + 256, 513: 1<<53 + 258, 599: 1<<53 + 344} {
		if got[i] != math.Float64bits(want) {
			t.Errorf("element %d: %v, want %v", i, math.Float64frombits(got[i]), want)
		}
	}
}

// Products and minima use the same lanes and blocks as sums: a product that overflows only in
// another order must not overflow.
func TestFoldProductOrder(t *testing.T) {
	// Lane 0 of the first block gets 1e200 twice and lane 1 1e-200 twice: lane 0 overflows to inf
	// and stays inf.
	x := slices.Repeat([]float64{1}, 128)
	x[0], x[64], x[1], x[65] = 1e200, 1e200, 1e-200, 1e-200
	if got := EvalRow(Prod, false, Float64, bits64(x))[0]; !math.IsNaN(math.Float64frombits(got)) {
		t.Errorf("inf times 0 is %v", math.Float64frombits(got))
	}
	// The same numbers in other lanes: nothing overflows.
	x = slices.Repeat([]float64{1}, 128)
	x[0], x[64], x[1], x[65] = 1e200, 1e-200, 1e200, 1e-200
	if got := EvalRow(Prod, false, Float64, bits64(x))[0]; math.Abs(math.Float64frombits(got)-1) > 1e-15 {
		t.Errorf("got %v, want about 1", math.Float64frombits(got))
	}
}

func TestFoldStart(t *testing.T) {
	for op := OpInvalid + 1; op < NumOps; op++ {
		info := op.Info()
		if info.Class != ClassReduce || info.Combine == OpInvalid {
			continue
		}
		for d := Bool; d < NumDTypes; d++ {
			if !info.In.Has(d) {
				continue
			}
			start := FoldStart(op, d)
			if err := CheckBits(d, start); err != nil {
				t.Errorf("%v of %v: %v", op, d, err)
			}
			samples := []uint64{0, OneBits(d)}
			if d.IsFloat() {
				samples = append(samples, 1<<(d.Bits()-1), leastBits(d), greatestBits(d), quietNaN(d))
			} else if d != Bool {
				samples = append(samples, leastBits(d), greatestBits(d))
			}
			for _, x := range samples {
				if got := EvalOp(info.Combine, d, []DType{d, d}, []uint64{start, x}); !SameValue(d, got, x) {
					t.Errorf("%v of %v: the start and %#x make %#x", op, d, x, got)
				}
			}
		}
	}
}

// SortKey gives a total order that agrees with Lt.
func TestSortKey(t *testing.T) {
	for _, d := range []DType{Float16, BFloat16, Float32, Float64, Int8, Uint8, Int64, Uint64} {
		samples := []uint64{0, OneBits(d), 2, widthMask(d), widthMask(d) >> 1, 1 << (d.Bits() - 1)}
		if d.IsFloat() {
			samples = append(samples, leastBits(d), greatestBits(d), quietNaN(d), OneBits(d)|1<<(d.Bits()-1))
		}
		for _, x := range samples {
			for _, y := range samples {
				up, down := SortKey(d, x, false) < SortKey(d, y, false), SortKey(d, x, true) > SortKey(d, y, true)
				nan := d.IsFloat() && (isNaNBits(d, x) || isNaNBits(d, y))
				if lt := EvalOp(Lt, Bool, []DType{d, d}, []uint64{x, y}) != 0; lt && !(up && down) {
					t.Errorf("%v: %#x is less than %#x, its key is not", d, x, y)
				}
				if !nan && up != down {
					t.Errorf("%v: %#x and %#x: the orders are not each other's reverse", d, x, y)
				}
			}
			if d.IsFloat() && SortKey(d, x, true) > SortKey(d, quietNaN(d), true) {
				t.Errorf("%v: %#x comes after NaN", d, x)
			}
		}
	}
}

// The numbers of lanes and of a block, by values that show them: a 1 that is added to 2^53 is lost,
// but two ones that are added first are not.
func TestFoldNumbers(t *testing.T) {
	x := make([]float64, 2*4096)
	x[0] = 1 << 53                   // lane 0 of block 0
	x[64], x[192] = 1, 1             // its lane: lost
	x[2048], x[2112] = 1, 1          // its block and lane: lost
	x[32], x[96] = 1, 1              // another lane: 2
	x[4096], x[4096+64] = 1, 1       // another block: 2
	x[4096+128], x[4096+5*64] = 1, 1 // the same: 2
	if got := EvalRow(Sum, false, Float64, bits64(x))[0]; got != math.Float64bits(1<<53+6) {
		t.Errorf("got 2^53 + %v", math.Float64frombits(got)-(1<<53))
	}
}
