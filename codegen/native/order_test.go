package native

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// plainISA is a target without instructions.
var plainISA = &ISA{Name: "plain", Bytes: 16, Regs: 16, New: func(*Buffer, *Builder) Machine { return nil }}

// TestWaitless checks that instructions which do not wait for a division come first, that operands
// precede their readers, and that nothing moves if an index may be out of range.
func TestWaitless(t *testing.T) {
	const text = "in 0 : float32\nin 1 : float32\nin 2 : int32\nout 3 : float32\n" +
		"%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = fdiv %0 %1 : float32\n%3 = add %2 %0 : float32\n%4 = mul %0 %1 : float32\n%5 = sub %4 %1 : float32\n"
	for _, c := range []struct {
		rest string
		want []int
	}{
		{"%6 = mul %3 %5 : float32\nstore 3 %6\n", []int{0, 1, 2, 4, 5, 3, 6}},
		{"%6 = load 2 : int32\n%7 = loadat 0 error %6 : float32\n%8 = mul %3 %5 : float32\n%9 = add %7 %8 : float32\nstore 3 %9\n", nil},
	} {
		k, err := codegen.Parse(text + c.rest)
		if err != nil {
			t.Fatal(err)
		}
		g := newCode(plainISA)
		g.setKernel(kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, len(k.Operands))}})
		g.levels()
		got := g.waitless()
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
		g.recycle()
	}
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = sqrt %0 : float32\n%2 = neg %0 : float32\n%3 = add %1 %2 : float32\nstore 1 %3\n")
	if err != nil {
		t.Fatal(err)
	}
	g := newCode(plainISA)
	defer g.recycle()
	g.setKernel(kernel{k: k, v: Variant{Class: make([]codegen.AccessClass, 2)}})
	g.levels()
	place := make([]int, len(k.Body))
	for at, i := range g.waitless() {
		place[i] = at
	}
	for i, in := range k.Body {
		for _, a := range in.Args {
			if a != ir.None && place[a] >= place[i] {
				t.Errorf("%d is computed before its operand %d", i, a)
			}
		}
	}
}
