package gpurun

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// TestAbreastChosen: the rows of a workgroup, the invocations that share one, and those that fold by
// shuffles, on hardware with subgroups of several sizes.
func TestAbreastChosen(t *testing.T) {
	sum := row("sum", "float32", "float32", " row")
	for _, c := range []struct {
		kernel string
		dims   []int64
		size   int
		beside bool
		want   string // rows, invocations of a row, and of a cluster
	}{
		{sum, []int64{1 << 20, 8}, 32, false, "64 by 2, 2"},
		{sum, []int64{1 << 20, 4}, 32, false, "128 by 1, 1"},
		{sum, []int64{100000, 33}, 32, false, "32 by 4, 4"},
		{rowtext.Softmax, []int64{4096, 1000}, 32, false, "4 by 32, 32"},
		{rowtext.Softmax, []int64{4096, 1000}, 64, false, "2 by 64, 64"},
		{rowtext.Softmax, []int64{4096, 1000}, 128, false, "1 by 128, 128"},
		{rowtext.Softmax, []int64{4096, 1000}, 16, false, "4 by 32, 16"},
		{rowtext.Softmax, []int64{4096, 1000}, 4, false, "4 by 32, 4"},
		{rowtext.Softmax, []int64{100, 1000}, 32, false, "alone"},
		{rowtext.Softmax, []int64{4096, 5000}, 32, false, "alone"},
		{wideSum, []int64{100000, 33}, 32, false, "alone"},
		{sum, []int64{4096, 100}, 32, true, "32 by 8, 32"},
		{sum, []int64{4096, 100}, 64, true, "32 by 8, 64"},
		{sum, []int64{4096, 100}, 128, true, "32 by 8, 64"},
		{sum, []int64{4096, 100}, 8, true, "32 by 8, 0"},
	} {
		f := newFake()
		f.info.Kind, f.info.Limits.Subgroup, f.info.Limits.Shuffles = "DiscreteGPU", c.size, true
		d := New("fake", f, glsl.Dialect, runtime.Config{})
		l := launch(t, d, c.kernel, 1, c.dims...)
		if c.beside {
			l.Args[0].Stride[0], l.Args[0].Stride[1] = 1, c.dims[0]
		}
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
		for _, v := range l.Prog.(*program).variants {
			got := "alone"
			if n := max(v.Abreast, v.Beside); n > 0 {
				got = fmt.Sprintf("%d by %d, %d", n, v.Group/n, v.Cluster)
			}
			if got != c.want {
				t.Errorf("%v with subgroups of %d: %s, want %s", c.dims, c.size, got, c.want)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestAbreastTuned: the tuner may change the size of workgroups, never how many invocations share a
// row, which would change sums.
func TestAbreastTuned(t *testing.T) {
	f := newFake()
	f.info.Kind, f.info.Limits.Subgroup, f.info.Limits.Shuffles = "DiscreteGPU", 32, true
	d := New("fake", f, glsl.Dialect, runtime.Config{})
	l := launch(t, d, rowtext.Softmax, 1, 4096, 1000)
	list := d.Choices(l).List
	if len(list) != 5 {
		t.Fatalf("%d choices: %v", len(list), list)
	}
	for _, c := range list {
		l.Choice = c.Code
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
	}
	var groups []int
	for _, v := range l.Prog.(*program).variants {
		groups = append(groups, v.Group)
		if v.Group/v.Abreast != 32 || v.Cluster != 32 {
			t.Errorf("%d rows by %d invocations, clusters of %d", v.Abreast, v.Group, v.Cluster)
		}
	}
	slices.Sort(groups)
	if !slices.Equal(groups, []int{32, 64, 128, 256}) {
		t.Errorf("workgroups of %v", groups)
	}
}
