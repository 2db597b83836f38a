package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
)

// hidingTest returns a kernel with operand 0, a mask 1 of floats, masks 2 and 3 of bools, and a
// scalar.
func hidingTest(t *testing.T, body string) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse("in 0 : float32\nin 1 : float32\nin 2 : bool\nin 3 : bool\nout 4 : float32\nscalar 0 : float32\n" +
		"%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = load 2 : bool\n%3 = load 3 : bool\n%4 = scalar 0 : float32\n" + body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return k
}

// numbered names the values of lines from 5 on, and stores the last one.
func numbered(lines string) string {
	var b strings.Builder
	n := 5
	for line := range strings.SplitSeq(lines, "; ") {
		fmt.Fprintf(&b, "%%%d = %s\n", n, line)
		n++
	}
	return b.String() + fmt.Sprintf("store 4 %%%d\n", n-1)
}

// TestHidingOf checks that hidingOf finds the mask of an operand after each op that may precede
// it, and finds no mask where there is none.
func TestHidingOf(t *testing.T) {
	const (
		mul = "mul %0 %4 : float32; add %5 %1 : float32"
		div = "div %0 %4 : float32; add %1 %5 : float32"
	)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		body   string
		scalar float32
		want   string // the mask and its kind, "computed", or ""
	}{
		{"add %0 %1 : float32", nan, "1 -inf"},
		{"add %1 %0 : float32", nan, "1 -inf"},
		{mul, 0.125, "1 -inf"},
		{mul, -8, "1 -inf"},
		{mul, 0, "1 -inf"},
		{mul, 0x1p38, "1 -inf"},
		{mul, 0x1p39, ""},
		{mul, inf, ""},
		{mul, nan, ""},
		{div, 8, "1 -inf"},
		{div, inf, ""},
		{div, 0x1p-38, "1 -inf"},
		{div, 0x1p-39, ""},
		{div, 0, ""},
		{"mul %0 %4 : float32; mul %5 %4 : float32; add %6 %1 : float32", 0x1p20, ""},
		{"div %0 %4 : float32; neg %5 : float32; add %6 %1 : float32", 8, "1 -inf"},
		{"div %4 %0 : float32; add %5 %1 : float32", 1, ""},
		{"exp %0 : float32; add %5 %1 : float32", 1, ""},
		{"mul %0 %1 : float32; add %5 %1 : float32", 1, ""},
		{"mul %0 %0 : float32; add %5 %1 : float32", 1, ""},
		{"add %0 %4 : float32; add %5 %1 : float32", 1, ""},
		{"add %0 %1 : float32; add %5 %0 : float32", 1, ""},
		{"add %0 %1 : float32; add %5 %1 : float32", 1, "1 -inf"},
		{"sub %0 %1 : float32", 1, ""},
		{"maximum %0 %1 : float32", 1, ""},
		{"add %0 %4 : float32", -inf, ""}, // hides everything, which is no mask

		{"where %2 %4 %0 : float32", -inf, "2 true small=false"},
		{"where %2 %0 %4 : float32", 7, "2 false small=false"},
		{"not %3 : bool; where %5 %4 %0 : float32", 0, "3 false small=false"},
		{"where %2 %1 %0 : float32", 0, "2 true small=false"},
		{"exp %0 : float32; mul %5 %1 : float32; div %6 %5 : float32; where %2 %4 %7 : float32", nan, "2 true small=false"},
		{"where %2 %4 %0 : float32; exp %5 : float32; where %2 %6 %0 : float32", 1, "2 true small=false"},
		{"where %2 %4 %0 : float32; exp %0 : float32; where %2 %1 %6 : float32; add %5 %7 : float32", 1, "2 true small=false"},
		{"where %2 %4 %0 : float32; add %5 %0 : float32", 1, ""},
		{"where %2 %0 %0 : float32", 1, ""},
		{"lt %0 %4 : bool; where %5 %4 %1 : float32", 1, ""},
		{"lt %0 %4 : bool; and %5 %2 : bool; where %6 %4 %0 : float32", 1, ""},
		{"where %2 %4 %0 : float32; where %3 %1 %5 : float32", 1, "computed small=false"},
		{"where %2 %4 %0 : float32; where %2 %5 %1 : float32", 1, "computed small=false"}, // hidden everywhere
		{"lt %1 %4 : bool; where %5 %4 %0 : float32", 1, "computed small=false"},
		{"full %4 : float32; where %2 %5 %1 : float32; add %0 %6 : float32", -inf, "computed small=true"},
		{"full %4 : float32; const 0 : float32; where %2 %5 %6 : float32; add %0 %7 : float32", -inf, "2 true small=true"},
		{"const 0 : float32; where %2 %5 %4 : float32; add %0 %6 : float32", -inf, "2 false small=true"},
		{"const 0 : float32; where %2 %5 %4 : float32; add %0 %6 : float32", -1e9, ""},

		// A row op's result depends on the unhidden operand; a mask computed from it comes too
		// late.
		{"where %2 %4 %0 : float32; max %5 : float32; sub %5 %6 : float32; exp %7 : float32; sum %8 : float32; div %8 %9 : float32", -inf, "2 true small=false"},
		{"max %0 : float32; where %2 %4 %0 : float32; sub %6 %5 : float32", -inf, ""},
		{"max %1 : float32; lt %1 %5 : bool; where %6 %4 %0 : float32", -inf, ""},
		{"max %1 : float32; lt %1 %5 : bool; where %2 %4 %0 : float32; where %6 %7 %1 : float32", -inf, "2 true small=false"},
	} {
		k := hidingTest(t, numbered(c.body))
		h := hidingOf(k, 0, []uint64{uint64(math.Float32bits(c.scalar))})
		got := ""
		switch {
		case h == nil:
		case h.mask < 0:
			got = fmt.Sprintf("computed small=%v", h.small)
		case h.kind == contract.ByInf && h.small:
			got = fmt.Sprintf("%d -inf", h.mask)
		default:
			got = fmt.Sprintf("%d %v small=%v", h.mask, h.kind == contract.ByTrue, h.small)
		}
		if got != c.want {
			t.Errorf("by %v: %q, not %q\n%s", c.scalar, got, c.want, k)
		}
	}
}

// TestHidden computes random kernels twice: where hidingOf says that an operand is hidden, another
// value must give the same bits.
func TestHidden(t *testing.T) {
	const rows, cols, tries = 3, 40, 1500
	rng := rand.New(rand.NewPCG(5, 8))
	inf := float32(math.Inf(1))
	specials := []float32{0, -1, 1e30, -1e30, inf, -inf, float32(math.NaN())}
	found, computed := 0, 0
	for range tries {
		k := hidingTest(t, randomHiding(rng))
		scalar := uint64(math.Float32bits([]float32{-inf, 0, 0.5, -3, 1e9}[rng.IntN(5)]))
		h := hidingOf(k, 0, []uint64{scalar})
		if h == nil {
			continue
		}
		args := make([]codegen.HostArg, 5)
		for i := range args {
			args[i].Data = make([]byte, rows*cols*k.Operands[i].DT.Size())
			args[i].Access = runtime.Access{Stride: [runtime.MaxRank]int64{cols, 1}}
		}
		for i := range rows * cols {
			mask := float32(rng.NormFloat64())
			if rng.IntN(2) == 0 {
				mask = -inf
			}
			putFloat(args[0].Data, i, float32(rng.NormFloat64()))
			putFloat(args[1].Data, i, mask)
			args[2].Data[i], args[3].Data[i] = byte(rng.IntN(2)), byte(rng.IntN(2))
		}
		hidden := hiddenBy(t, k, h, args, scalar, rows, cols)
		first := interpreted(t, k, args, scalar, rows, cols)
		for i := range rows * cols {
			switch {
			case hidden[i] == 0:
			case h.small:
				putFloat(args[0].Data, i, []float32{0, 1e9, -0.25}[rng.IntN(3)])
			default:
				putFloat(args[0].Data, i, specials[rng.IntN(len(specials))])
			}
		}
		second := interpreted(t, k, args, scalar, rows, cols)
		for i := range rows * cols {
			if !kernels.SameBits(ir.Float32, ir.LoadBits(ir.Float32, first[4*i:]), ir.LoadBits(ir.Float32, second[4*i:])) {
				t.Fatalf("element %d is %#x with one operand, %#x with another, where it is hidden by\n%s\nin\n%s", i, ir.LoadBits(ir.Float32, first[4*i:]), ir.LoadBits(ir.Float32, second[4*i:]), h.kernel, k)
			}
		}
		found++
		if h.mask < 0 {
			computed++
		}
	}
	if found < tries/20 || computed < tries/100 {
		t.Errorf("of %d kernels %d hide their operand, %d of them by what they compute", tries, found, computed)
	}
}

// randomHiding returns a random body of ops that hide, ops that do not, and row ops.
func randomHiding(rng *rand.Rand) string {
	floats, bools, n := []int{0, 0, 1, 4}, []int{2, 3}, 5
	var b strings.Builder
	pick := func(from []int) int { // late values more often
		return from[max(rng.IntN(len(from)), rng.IntN(len(from)))]
	}
	for range 2 + rng.IntN(6) {
		x, y, z, c := pick(floats), pick(floats), floats[rng.IntN(len(floats))], pick(bools)
		to := &floats
		switch rng.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "%%%d = mul %%%d %%4 : float32\n", n, x)
		case 1:
			fmt.Fprintf(&b, "%%%d = add %%%d %%%d : float32\n", n, x, y)
		case 2, 3:
			fmt.Fprintf(&b, "%%%d = add %%%d %%1 : float32\n", n, x)
		case 4, 5:
			fmt.Fprintf(&b, "%%%d = where %%%d %%%d %%%d : float32\n", n, c, x, z)
		case 6, 7:
			fmt.Fprintf(&b, "%%%d = where %%%d %%%d %%%d : float32\n", n, c, z, x)
		case 8:
			fmt.Fprintf(&b, "%%%d = neg %%%d : float32\n", n, x)
		case 9:
			fmt.Fprintf(&b, "%%%d = max %%%d : float32\n", n, x)
		case 10:
			to = &bools
			fmt.Fprintf(&b, "%%%d = lt %%%d %%%d : bool\n", n, y, z)
		case 11:
			to = &bools
			fmt.Fprintf(&b, "%%%d = %s : bool\n", n, []string{fmt.Sprintf("not %%%d", c), fmt.Sprintf("and %%%d %%%d", c, pick(bools))}[rng.IntN(2)])
		}
		*to = append(*to, n)
		n++
	}
	// The subtraction makes a point of a value that may be a row's.
	fmt.Fprintf(&b, "%%%d = sub %%%d %%1 : float32\nstore 4 %%%d\n", n, floats[len(floats)-1], n)
	return b.String()
}

func putFloat(data []byte, i int, f float32) {
	binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(f))
}

// hiddenBy computes the bytes of a mask, and compares a mask of one operand with them.
func hiddenBy(t *testing.T, k *codegen.Kernel, h *hiding, args []codegen.HostArg, scalar uint64, rows, cols int64) []byte {
	t.Helper()
	out := codegen.HostArg{Data: make([]byte, rows*cols), Access: args[0].Access}
	var read []codegen.HostArg
	for _, slot := range h.reads {
		read = append(read, args[slot])
	}
	if err := codegen.Interpret(h.kernel, []int64{rows, cols}, 2, append(read, out), []uint64{scalar}); err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, h.kernel, k)
	}
	for i := range rows * cols {
		if h.mask < 0 {
			break
		}
		hides := false
		switch h.kind {
		case contract.ByInf:
			hides = math.IsInf(float64(math.Float32frombits(uint32(ir.LoadBits(ir.Float32, args[h.mask].Data[4*i:])))), -1)
		default:
			hides = (args[h.mask].Data[i] == 1) == (h.kind == contract.ByTrue)
		}
		if hides != (out.Data[i] == 1) {
			t.Fatalf("operand %d hides by kind %d element %d: %v, not\n%s", h.mask, h.kind, i, hides, h.kernel)
		}
	}
	return out.Data
}

func interpreted(t *testing.T, k *codegen.Kernel, args []codegen.HostArg, scalar uint64, rows, cols int64) []byte {
	t.Helper()
	kept := 2
	if k.HasRows() {
		kept = 1
	}
	args[4].Data = make([]byte, rows*cols*4)
	if err := codegen.Interpret(k, []int64{rows, cols}, kept, args, []uint64{scalar}); err != nil {
		t.Fatalf("%v\n%s", err, k)
	}
	return args[4].Data
}
