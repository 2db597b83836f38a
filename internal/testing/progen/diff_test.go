package progen

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

func TestDiff(t *testing.T) {
	p, err := ir.ParseGraph("%0 = input : float32(3)\noutput %0\n")
	if err != nil {
		t.Fatal(err)
	}
	want := ir.NewDense(p.Types()[0])
	want.Set(1, 0x7fc00000)
	got := ir.Dense{TensorType: want.TensorType, Data: slices.Clone(want.Data)}
	got.Set(1, 0xffc00001)
	if err := Diff(p, [][]byte{want.Data}, [][]byte{got.Data}); err != nil {
		t.Errorf("two NaNs: %v", err)
	}
	got.Set(2, 0x80000000)
	err = Diff(p, [][]byte{want.Data}, [][]byte{got.Data})
	if err == nil || !strings.Contains(err.Error(), "element 2 is -0, want 0") {
		t.Errorf("zeros of different sign: %v", err)
	}
	if Diff(p, [][]byte{want.Data}, nil) == nil || Diff(p, [][]byte{want.Data}, [][]byte{nil}) == nil {
		t.Error("missing data is not seen")
	}
}
