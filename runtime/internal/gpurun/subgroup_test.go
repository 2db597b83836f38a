package gpurun

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/glsl"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

const wideSum = "in 0 : int32\nout 1 : int32 row\n%0 = load 0 : int32\n%1 = convert %0 : int64\n%2 = sum %1 : int64\n%3 = convert %2 : int32\nstore 1 %3"

// withSubgroups is a fake with subgroups of a given size.
func withSubgroups(t *testing.T, kind string, size int, lang *shader.Dialect, c runtime.Config) (*Runner, *fake) {
	f := newFake()
	f.info.Kind, f.info.Limits.Subgroup = kind, size
	d := New("fake", f, lang, c)
	t.Cleanup(func() { _ = d.Close() })
	return d, f
}

// usesSubgroups runs rows of 400 and reports whether the only shader uses subgroups.
func usesSubgroups(t *testing.T, d *Runner, kernel string, kept int, dims ...int64) bool {
	t.Helper()
	l := launch(t, d, kernel, kept, dims...)
	if err := d.Run([]runtime.Launch{*l}); err != nil {
		t.Fatal(err)
	}
	list := d.Source(l.Prog)
	if len(list) != 1 {
		t.Fatalf("%d shaders", len(list))
	}
	return strings.Contains(list[0].Source, "subgroup")
}

// TestSubgroupsChosen: the choice depends on adapter, language, option and kernel.
func TestSubgroupsChosen(t *testing.T) {
	sum, scan := row("sum", "float32", "float32", " row"), row("cumsum", "float32", "float32", "")
	const on, off = runtime.SubgroupsOn, runtime.SubgroupsOff
	for _, c := range []struct {
		name   string
		kind   string
		size   int
		lang   *shader.Dialect
		mode   runtime.SubgroupMode
		kernel string
		dims   []int64
		want   bool
	}{
		{"hardware", "DiscreteGPU", 32, glsl.Dialect, on, sum, []int64{100, 400}, true},
		{"a scan", "IntegratedGPU", 64, glsl.Dialect, on, scan, []int64{100, 400}, true},
		{"softmax", "DiscreteGPU", 32, glsl.Dialect, on, rowtext.Softmax, []int64{70, 256}, true},
		{"turned off", "DiscreteGPU", 32, glsl.Dialect, off, sum, []int64{100, 400}, false},
		{"none", "DiscreteGPU", 0, glsl.Dialect, on, sum, []int64{100, 400}, false},
		{"a language without", "DiscreteGPU", 32, wgsl.Dialect, on, sum, []int64{100, 400}, false},
		{"software", "CPU", 8, glsl.Dialect, on, sum, []int64{100, 400}, true},
		{"short rows", "DiscreteGPU", 32, glsl.Dialect, on, sum, []int64{1000, 8}, false},
		{"64 bits", "DiscreteGPU", 32, glsl.Dialect, on, wideSum, []int64{100, 400}, false},
		{"no rows", "DiscreteGPU", 32, glsl.Dialect, on, copyKernel, []int64{100, 400}, false},
	} {
		d, _ := withSubgroups(t, c.kind, c.size, c.lang, runtime.Config{Subgroups: c.mode})
		kept := 1
		if c.kernel == copyKernel {
			kept = 2
		}
		if got := usesSubgroups(t, d, c.kernel, kept, c.dims...); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		said := strings.Contains(d.Caps().Description, "subgroups of")
		if want := c.size > 0 && c.lang == glsl.Dialect && c.mode == on; said != want {
			t.Errorf("%s: described as %q", c.name, d.Caps().Description)
		}
	}
}

// TestSubgroupScopes: stored entries are separate for each size of subgroups, and for none.
func TestSubgroupScopes(t *testing.T) {
	seen := map[string]int{}
	for size, mode := range map[int]runtime.SubgroupMode{8: runtime.SubgroupsOn, 32: runtime.SubgroupsOn, 64: runtime.SubgroupsOff} {
		d, _ := withSubgroups(t, "DiscreteGPU", size, glsl.Dialect, runtime.Config{Subgroups: mode})
		if other, dup := seen[d.caps.Scope()]; dup {
			t.Errorf("subgroups of %d and of %d have one scope", size, other)
		}
		seen[d.caps.Scope()] = size
	}
}

// TestSubgroupsRefused: a driver that does not compile a shader with subgroups gets no more of
// them. That is counted and reported, and the results are right.
func TestSubgroupsRefused(t *testing.T) {
	var told []error
	d, f := withSubgroups(t, "DiscreteGPU", 32, glsl.Dialect, runtime.Config{OnError: func(err error) { told = append(told, err) }})
	f.compiling = func(source string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.refuse = nil
		if strings.Contains(source, "subgroup") {
			f.refuse = &SourceError{"no subgroups"}
		}
	}
	for _, kernel := range []string{row("sum", "float32", "float32", " row"), row("max", "float32", "float32", " row")} {
		if usesSubgroups(t, d, kernel, 1, 100, 400) {
			t.Error("they are used")
		}
	}
	s := d.Stats()
	if s.Fallbacks != 1 || s.CompileFails != 1 || s.Compiles != 2 {
		t.Errorf("%d fallbacks, %d failures, %d compiles", s.Fallbacks, s.CompileFails, s.Compiles)
	}
	if len(told) != 1 || !strings.Contains(told[0].Error(), "subgroups") || !strings.Contains(told[0].Error(), "no subgroups") {
		t.Errorf("told %v", told)
	}
}
