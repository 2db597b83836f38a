package gpurun

import (
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// TestRaggedChosen: rows are loaded by vectors although they begin within one, as far as their
// operands begin at the same place.
func TestRaggedChosen(t *testing.T) {
	sum, scan := row("sum", "float32", "float32", " row"), row("cumsum", "float32", "float32", "")
	// Operand 0 is read from position 4 of a row on.
	padded := "in 0 : int32\nout 1 : int32\nindex 2\n%0 = indexlo 2 : uint32\n%1 = convert %0 : int32\n%2 = const 4 : int32\n%3 = ge %1 %2 : bool\n" +
		"%4 = load 0 %3 : int32\n%5 = max %4 : int32\n%6 = sub %4 %5 : int32\nstore 1 %6"
	for _, c := range []struct {
		name       string
		kernel     string
		dims       []int64
		offset     int64  // of operand 1
		hard, soft []bool // operands that move by vectors; nil if the rows are not ragged
	}{
		{"sums", sum, []int64{100, 401}, 0, []bool{true, false}, nil},
		{"even rows", sum, []int64{100, 400}, 0, nil, nil},
		{"short rows", sum, []int64{100, 13}, 0, nil, nil},
		{"scans", scan, []int64{100, 401}, 4, []bool{true, true}, nil},
		{"a scan to elsewhere", scan, []int64{100, 401}, 3, []bool{true, false}, nil},
		{"softmax", rowtext.Softmax, []int64{100, 401}, 0, []bool{true, true, false}, []bool{true, true, false}},
		{"softmax to elsewhere", rowtext.Softmax, []int64{100, 401}, 1, []bool{true, false, false}, []bool{true, false, false}},
		{"padded rows", padded, []int64{100, 401}, 0, []bool{false, true, false}, []bool{false, true, false}},
		{"two dims", sum, []int64{100, 7, 101}, 0, nil, nil},
	} {
		for kind, want := range map[string][]bool{"DiscreteGPU": c.hard, "CPU": c.soft} {
			f := newFake()
			f.info.Kind = kind
			d := New("fake", f, glsl.Dialect, runtime.Config{})
			l := launch(t, d, c.kernel, 1, c.dims...)
			if l.Args[1].Offset = c.offset; c.offset > 0 { // there is room behind
				l.Dims[0]--
			}
			if len(c.dims) == 3 {
				l.Args[0].Stride[1]++ // two dims that are not one
				l.Dims[0] -= 2
			}
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			for _, v := range l.Prog.(*program).variants {
				if v.Ragged != (want != nil) {
					t.Errorf("%s on %s: ragged rows %t", c.name, kind, v.Ragged)
				}
				for i := range want {
					if v.Args[i].Vec != want[i] {
						t.Errorf("%s on %s: operand %d moves by vectors: %t", c.name, kind, i, v.Args[i].Vec)
					}
				}
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
