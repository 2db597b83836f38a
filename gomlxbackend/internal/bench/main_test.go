package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// suite is one as backendtest's: benchmarks in benchmarks, with names that have
// slashes of their own, whose setup runs nothing.
func suite(b *testing.B, backend compute.Backend) {
	add := func(b *testing.B, name string, n int) {
		b.Run(name, func(b *testing.B) {
			bd := backend.Builder(name)
			f := bd.Main()
			s := shapes.Make(dtypes.Float32, n)
			x, err := f.Parameter("x", s, nil)
			if err != nil {
				b.Fatal(err)
			}
			y, err := f.Neg(x)
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Return([]compute.Value{y}, nil); err != nil {
				b.Fatal(err)
			}
			e, err := bd.Compile()
			if err != nil {
				b.Fatal(err)
			}
			buf, err := backend.BufferFromFlatData(0, make([]float32, n), s)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := e.Execute([]compute.Buffer{buf}, nil, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("A", func(b *testing.B) {
		add(b, "Fused/3", 3)
		add(b, "Decomposed/3", 3)
	})
	b.Run("B", func(b *testing.B) {
		b.Run("model", func(b *testing.B) { add(b, "[5, 1]x/y", 5) })
	})
}

func TestCollectAndMeasure(t *testing.T) {
	var lists [2][]workload
	for i, name := range []string{"go", "millrace:cpu,compile=off"} {
		b, err := compute.NewWithConfig(name)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Finalize()
		if lists[i], err = collect(b, suite); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, w := range lists[i] {
			names = append(names, w.name)
		}
		if want := []string{"A/Fused/3", "A/Decomposed/3", "B/model/[5,_1]x/y"}; !slices.Equal(names, want) {
			t.Fatalf("%s: %q, want %q", name, names, want)
		}
	}
	groups, err := group(lists, regexp.MustCompile("^A"))
	if err != nil || len(groups) != 1 || len(groups[0]) != 2 {
		t.Fatalf("%v, %v; want one group of two cases", groups, err)
	}
	c := config{rounds: 3, batch: time.Microsecond, warm: time.Second}
	rs, err := measure(c, [2]settler{}, groups[0])
	if err != nil || len(rs) != 2 {
		t.Fatalf("%v, %v", rs, err)
	}
	for _, r := range rs {
		for i := range r.times {
			if len(r.times[i]) != c.rounds || slices.Min(r.times[i]) <= 0 || r.first[i] <= 0 {
				t.Errorf("%s: %v", r.name, r)
			}
		}
	}
	var text strings.Builder
	summary(&text, rs)
	if !strings.Contains(text.String(), "2 cases") || !strings.Contains(text.String(), "| A/3 |") {
		t.Errorf("%s", &text)
	}
	lists[1] = lists[1][1:]
	if _, err := group(lists, regexp.MustCompile("")); err == nil {
		t.Error("a case of one backend only is no error")
	}
}

func TestSummary(t *testing.T) {
	us := func(xs ...float64) []float64 {
		for i := range xs {
			xs[i] *= 1e-6
		}
		return xs
	}
	var text strings.Builder
	summary(&text, []result{
		{name: "S/Fused/8", times: [2][]float64{us(80, 80, 80), us(10, 10, 10)}},
		{name: "S/Decomposed/8", times: [2][]float64{us(5, 6, 5), us(12, 12, 12)}},
		{name: "Dot", times: [2][]float64{us(40, 40, 40), us(10, 20, 10)}},
	})
	for _, want := range []string{"3 cases, geometric mean 2.37 times faster, 1 slower", "| S/8 | 1.20 [1.20 1.20] | 0.06 |"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q does not say %q", &text, want)
		}
	}
	r := result{name: "x", times: [2][]float64{us(250, 250), us(12.34, 12.34)}, first: [2]time.Duration{0, 1234567}}
	if got, want := r.row(), "| x | 250 | 12.3 | 20.26 [20.26 20.26] | 1.23ms |"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
