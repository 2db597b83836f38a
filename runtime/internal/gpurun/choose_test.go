package gpurun

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// TestChosen: the shaders for each kind of launch, on a GPU and on a software adapter.
func TestChosen(t *testing.T) {
	sum := row("sum", "float32", "float32", " row")
	for _, c := range []struct {
		name          string
		kernel        string
		kept          int
		dims          []int64
		columns       bool // the last dim but one is innermost in memory
		gpu, software string
	}{
		{"elements", copyKernel, 1, []int64{1000}, false, "map 4/256", "map 4/64"},
		{"an odd end", copyKernel, 1, []int64{1001}, false, "map 4/256", "map 4/64"},
		{"before others", copyKernel, 1, []int64{2001}, false, "map 4/256 tail", "map 4/64 tail"},
		{"many elements", copyKernel, 1, []int64{1 << 17}, false, "map 4/256", "map 4/64 steps=4 exact"},
		{"many to an odd end", copyKernel, 1, []int64{1<<17 + 1}, false, "map 4/256", "map 4/64 steps=4"},
		{"across", copyKernel, 2, []int64{100, 20}, false, "map 1/256 turn=1", "map 4/64 steps=16 turn=1"},
		{"ragged rows", copyKernel, 2, []int64{10, 101}, true, "map 1/256", "map 4/64 tail ragged"},
		{"few", copyKernel, 1, []int64{3}, false, "map 1/256", "map 1/64"},
		{"a row", sum, 1, []int64{100, 400}, false, "rows 4/64", "rows 4/8"},
		{"short rows", sum, 1, []int64{1000, 8}, false, "cols 1/64", "cols 4/64 online=2 across"},
		{"columns", sum, 1, []int64{1000, 400}, true, "cols 1/64", "cols 4/64 online=2 across"},
		{"many columns", sum, 1, []int64{1 << 16, 101}, true, "rows 1/256 beside=32", "cols 4/8 each=16 online=1 across"},
		{"very many columns", sum, 1, []int64{1 << 20, 3}, true, "cols 4/64 across", "cols 4/64 each=4 online=1 across"},
		{"many rows", rowtext.Norm, 1, []int64{1024, 512}, false, "rows 4/64 unroll=2 exact", "rows 4/8 unroll=16 exact"},
		{"a row for each", rowtext.Softmax, 1, []int64{5000, 8}, false, "cols 1/64", "rows 4/64 unroll=2 abreast=64 exact"},
		{"few rows", rowtext.Softmax, 1, []int64{300, 33}, false, "rows 4/64 unroll=1 ragged", "rows 4/8 unroll=9 abreast=8 ragged"},
		{"sums for each", sum, 1, []int64{5000, 64}, false, "rows 4/64", "rows 4/64 abreast=64"},
		{"scans for each", row("cumsum", "float32", "float32", ""), 1, []int64{5000, 1000}, false, "rows 4/64", "rows 4/64 abreast=64"},
		{"softmax", rowtext.Softmax, 1, []int64{70, 256}, false, "rows 4/64 unroll=1 exact", "rows 4/8 unroll=8 exact"},
	} {
		for _, kind := range []string{"DiscreteGPU", "CPU"} {
			f := newFake()
			f.info.Kind = kind
			d := New("fake", f, wgsl.Dialect, runtime.Config{})
			l := launch(t, d, c.kernel, c.kept, c.dims...)
			if c.name == "before others" {
				l.Dims[0] = 1001
			}
			if c.name == "across" {
				l.Args[0].Stride[0], l.Args[0].Stride[1] = 1, c.dims[0]
			}
			if c.columns && c.kept == 2 {
				l.Args[0].Stride[0]++ // no longer a dense array
				l.Dims[0]--
			} else if c.columns {
				for i := range l.Args {
					if s := &l.Args[i].Stride; s[c.kept] != 0 {
						s[c.kept-1], s[c.kept] = 1, c.dims[c.kept-1]
					}
				}
			}
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			want := map[string]string{"DiscreteGPU": c.gpu, "CPU": c.software}[kind]
			for _, v := range l.Prog.(*program).variants {
				got := fmt.Sprintf("%s %d/%d", [...]string{"map", "rows", "cols", "tiles", "checks", "scatters"}[v.Mode], v.Lanes, v.Group)
				for _, x := range []struct {
					name string
					n    int
				}{{"each", v.Each}, {"steps", v.Steps}, {"turn", v.Turn}, {"online", v.Online}, {"unroll", v.Unroll}, {"beside", v.Beside}, {"abreast", v.Abreast}, {"cluster", v.Cluster}} {
					if x.n > 0 {
						got += fmt.Sprintf(" %s=%d", x.name, x.n)
					}
				}
				for i, is := range []bool{v.Across, v.Tail, v.Ragged, v.Exact} {
					if is {
						got += []string{" across", " tail", " ragged", " exact"}[i]
					}
				}
				if got != want {
					t.Errorf("%s on %s: %s, want %s", c.name, kind, got, want)
				}
			}
		}
	}
}
