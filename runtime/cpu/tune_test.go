package cpu

import (
	"fmt"
	"testing"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestChoices compares every choice of contractions with the oracle, by Run and by Try, and checks
// that Try counts nothing.
func TestChoices(t *testing.T) {
	testhook.SetChoice(0) // list all choices, also for small launches
	defer testhook.SetChoice(-1)
	configs := []runtime.Config{{Tier: -1, Threads: 2}, {Tier: 1, Threads: 2}, {Tier: 1, Threads: 2, Compile: runtime.CompileC}}
	for _, c := range configs {
		d := openTest(t, c)
		for _, name := range []string{"plain", "around"} {
			k := rowKernel(t, dotKernels[name])
			for _, c := range dotCases[:3] {
				for _, size := range append(dotSizes[1:2:2], map[string]int64{"i": 50, "j": 130, "k": 300, "b": 2}) {
					h := dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result)
					want := reference(t, k, h)
					var list []runtime.Choice
					bound(t, d, k, h, func(l *runtime.Launch) { list = d.Choices(l).List })
					if len(list) != int(numChoices) && d.dots.Tiles(ir.Float32, false) {
						t.Fatalf("%s %s, %v: choices %v", name, c.name, size, list)
					}
					for _, x := range list {
						what := fmt.Sprintf("%s %s, %v by %s", name, c.name, size, x.Name)
						bound(t, d, k, h, func(l *runtime.Launch) {
							l.Choice = x.Code
							before := d.Stats()
							if _, err := d.Try(l); err != nil {
								t.Fatalf("%s: %v", what, err)
							}
							if s := d.Stats(); s.Launches != before.Launches || s.Tier0 != before.Tier0 {
								t.Errorf("%s: a try was counted: %+v, before %+v", what, s, before)
							}
							compare(t, "tried, "+what, k, contents(t, d, k, h, l), want)
						})
						bound(t, d, k, h, func(l *runtime.Launch) {
							l.Choice = x.Code
							if err := d.Run([]runtime.Launch{*l}); err != nil {
								t.Fatalf("%s: %v", what, err)
							}
							compare(t, "run, "+what, k, contents(t, d, k, h, l), want)
						})
					}
				}
			}
		}
	}
}

// TestNoChoices checks that small launches and those without a contraction have no choices, and
// that Try can fail.
func TestNoChoices(t *testing.T) {
	defer fault.Reset()
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	k, c := rowKernel(t, dotKernels["plain"]), dotCases[0]
	bound(t, d, k, dotCase(k, c.dims, map[string]int64{"i": 50, "j": 13, "k": 30, "b": 2}, c.left, c.right, c.bias, c.residual, c.result), func(l *runtime.Launch) {
		if c := d.Choices(l); len(c.List) > 0 {
			t.Errorf("a small contraction has choices: %v", c)
		}
		fault.Set(fault.Launch, 1)
		if _, err := d.Try(l); err == nil {
			t.Error("a try that should fail did not")
		}
	})
	const rows, cols = 700, 1000
	x, y := mustAlloc(t, d, rows*cols*4), mustAlloc(t, d, rows*cols*4)
	for i, l := range chained(t, d, x, y, rows, cols) {
		if c := d.Choices(&l); len(c.List) > 0 {
			t.Errorf("launch %d of a chain has choices: %v", i, c)
		}
	}
}

func TestBucket(t *testing.T) {
	last := int64(-1)
	for n := int64(0); n < 1<<20; n = n + n/50 + 1 {
		b := bucket(n)
		if b < last || b > last+2 {
			t.Errorf("bucket(%d) = %d after %d", n, b, last)
		}
		last = b
	}
	if bucket(1024) == bucket(1500) || bucket(1024) != bucket(1300) || bucket(1<<62) == 0 {
		t.Error(bucket(1024), bucket(1300), bucket(1500))
	}
}

func mustAlloc(t *testing.T, d *device, bytes int64) runtime.Buffer {
	t.Helper()
	b, err := d.Alloc(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
