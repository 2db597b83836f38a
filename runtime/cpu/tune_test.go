package cpu

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/internal/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// TestChoices holds every choice of every launch against the oracle, run and
// tried, and sees that each knob is turned somewhere.
func TestChoices(t *testing.T) {
	force.SetVariant(0) // all of them are listed, also for small launches
	defer force.SetVariant(-1)
	seen := map[string]map[string]bool{}
	ds := everyDevice(t)
	delete(ds, "tier 0, 1 threads")
	delete(ds, "tier 0, 4 threads")
	each := func(what string, k *codegen.Kernel, h *kerneltest.Launch, compiled bool) {
		t.Helper()
		want := reference(t, k, h)
		for name, d := range ds {
			if name == "tier 1" && !compiled && !thorough {
				continue // several compiles for each
			}
			if seen[name] == nil {
				seen[name] = map[string]bool{}
			}
			var list []runtime.Choice
			bound(t, d, k, h, func(l *runtime.Launch) { list = d.Choices([]runtime.Launch{*l}).List })
			list = withCombinations(d, list, name != "tier 1")
			for _, c := range list {
				bound(t, d, k, h, func(l *runtime.Launch) {
					l.Choice = c.Code
					if _, err := d.Try([]runtime.Launch{*l}); err != nil {
						t.Fatalf("%s, %s, %s: %v", name, c.Name, what, err)
					}
					compare(t, fmt.Sprintf("%s, tried %s, %s", name, c.Name, what), k, contents(t, d, k, h, l), want)
				})
				bound(t, d, k, h, func(l *runtime.Launch) {
					l.Choice = c.Code
					if err := d.Run([]runtime.Launch{*l}); err != nil {
						t.Fatalf("%s, %s, %s: %v", name, c.Name, what, err)
					}
					compare(t, fmt.Sprintf("%s, run by %s, %s", name, c.Name, what), k, contents(t, d, k, h, l), want)
				})
				for _, turned := range strings.Fields(c.Name) {
					knob, _, _ := strings.Cut(turned, "=")
					seen[name][knob] = true
				}
				if strings.Contains(c.Name, " ") {
					seen[name]["combined"] = true
				}
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	}
	shapes := rowShapes
	if !thorough {
		shapes = shapes[len(shapes)-5:]
	}
	for i, name := range slices.Sorted(maps.Keys(rowtext.All)) {
		if !thorough && !slices.Contains([]string{"softmax", "norm"}, name) {
			continue // each is a compile, or several
		}
		k := rowKernel(t, rowtext.All[name])
		for _, s := range shapes {
			for _, columns := range []bool{false, true} {
				h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, uint64(i))), k, s.dims, s.kept, kerneltest.Dense)
				for a := range h.Args {
					if columns && s.kept > 0 {
						transpose(h, a, s.kept)
					}
				}
				each(fmt.Sprintf("%s, %v, %d kept, columns %v", name, s.dims, s.kept, columns), k, h, name == "softmax" && (columns || s.kept == 1))
			}
		}
	}
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(6, seed))
		k := kerneltest.Random(rng, 8, 0)
		for _, how := range []kerneltest.Pattern{kerneltest.Dense, kerneltest.Mixed} {
			h := kerneltest.NewLaunch(rng, k, []int64{70, 130}, 2, how)
			each(fmt.Sprintf("random %d, pattern %d", seed, how), k, h, seed == 0 && how == kerneltest.Dense)
		}
	}
	add := rowKernel(t, "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2\n")
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(7, 7)), add, []int64{70, 130}, 2, kerneltest.Dense)
	transpose(h, 1, 1)
	each("transposed", add, h, true)
	for _, name := range []string{"plain", "around"} {
		k := rowKernel(t, dotKernels[name])
		for _, c := range dotCases[:3] {
			for _, size := range append(dotSizes[1:2:2], map[string]int64{"i": 50, "j": 130, "k": 300, "b": 2}) {
				each(fmt.Sprintf("%s %s, %v", name, c.name, size), k, dotCase(k, c.dims, size, c.left, c.right, c.bias, c.residual, c.result), name == "plain")
			}
		}
	}
	always := []string{"default", "combined", "threads", "tile", "rows", "columns", "recompute", "split", "transpose", "block"}
	for name, want := range map[string][]string{"tier 0, 2 threads": always, "go": always, "tier 1": append(always[:len(always)-1:len(always)-1], "ahead", "unroll")} {
		if name == "tier 1" && ds[name].comp == nil {
			continue
		}
		for _, knob := range want {
			if !seen[name][knob] {
				t.Errorf("%s: %s was not turned by any launch: %v", name, knob, slices.Sorted(maps.Keys(seen[name])))
			}
		}
	}
}

// withCombinations adds the combination of all choices, and with pairs those of
// neighbours.
func withCombinations(d *device, list []runtime.Choice, pairs bool) []runtime.Choice {
	n := len(list)
	var all []uint64
	for i := 1; i < n; i++ {
		all = append(all, list[i].Code)
	}
	for i := 1; pairs && i < len(all); i++ {
		if c, ok := d.Combine(all[i-1 : i+1]); ok {
			list = append(list, c)
		}
	}
	if c, ok := d.Combine(all); ok {
		list = append(list, c)
	}
	return list
}

// TestCombine: a combination turns every knob that its parts turn, as the first
// that turns it does; what differs over one knob only is none.
func TestCombine(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1})
	one, two, deep, high := turn(knobThreads, 1), turn(knobThreads, 2), turn(knobUnroll, 4), turn(knobTile, tileOwn+1)
	for _, c := range []struct {
		of   []choice
		want string
	}{
		{[]choice{one, deep}, "threads=1 unroll=4"}, {[]choice{deep, one}, "threads=1 unroll=4"},
		{[]choice{deep, two, one, high}, "threads=2 tile=2 unroll=4"}, {[]choice{one, two}, ""}, {[]choice{0, one}, ""}, {nil, ""},
	} {
		codes := make([]uint64, len(c.of))
		for i, x := range c.of {
			codes[i] = uint64(x)
		}
		got, ok := d.Combine(codes)
		if ok != (c.want != "") || got.Name != c.want || ok && choice(got.Code).String() != c.want {
			t.Errorf("%v: %+v, want %q", c.of, got, c.want)
		}
	}
}

// TestChoiceText: every choice says what it turns, and says it back.
func TestChoiceText(t *testing.T) {
	names := map[string]bool{}
	for k := range numKnobs {
		for v := range int64(1)<<knobs[k].len - 1 {
			if v > 8 {
				break
			}
			c := turn(k, v)
			if got, set := c.of(k); !set || got != v {
				t.Errorf("knob %d: %d became %d", k, v, got)
			}
			for other := range numKnobs {
				if _, set := c.of(other); set && other != k {
					t.Errorf("knob %d turns knob %d", k, other)
				}
			}
			if v < 2 || knobs[k].len > 2 {
				if names[c.String()] {
					t.Errorf("two choices are called %s", c)
				}
				names[c.String()] = true
			}
		}
	}
	if s := (turn(knobThreads, 2) | turn(knobOrder, turnedOn)).String(); s != "threads=2 columns=on" {
		t.Error(s)
	}
	if s := choice(0).String(); s != "default" {
		t.Error(s)
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

// Nothing is counted that was only tried, small launches offer nothing, and a
// choice that needs code which cannot be made is refused when it is tried and
// passed over, counted, when it is run.
func TestTry(t *testing.T) {
	defer fault.Reset()
	d := openTest(t, runtime.Config{Tier: 1, Threads: 2, OnError: func(error) {}})
	if d.comp == nil {
		t.Skip("no compiler")
	}
	rng := rand.New(rand.NewPCG(7, 7))
	k := kerneltest.Random(rng, 6, 0)
	h := kerneltest.NewLaunch(rng, k, []int64{60}, 1, kerneltest.Dense)
	want := reference(t, k, h)
	bound(t, d, k, h, func(l *runtime.Launch) {
		unit := []runtime.Launch{*l}
		if c := d.Choices(unit); len(c.List) > 0 {
			t.Errorf("60 elements have choices: %v", c)
		}
		if err := d.Run(unit); err != nil {
			t.Fatal(err)
		}
		before := d.Stats()
		if _, err := d.Try(unit); err != nil {
			t.Fatal(err)
		}
		if s := d.Stats(); s != before {
			t.Errorf("a try was counted: %+v, before %+v", s, before)
		}
		unit[0].Choice = uint64(turn(knobUnroll, 1))
		changes := d.Changes()
		fault.Set(fault.Compile, -1)
		if _, err := d.Try(unit); !errors.Is(err, errNoCode) {
			t.Errorf("a try without code: %v", err)
		}
		fault.Reset()
		if d.Changes() == changes {
			t.Error("a failed compile is no change")
		}
		if err := d.Run(unit); err != nil {
			t.Fatal(err)
		}
		compare(t, "without code", k, contents(t, d, k, h, &unit[0]), want)
		if s := d.Stats(); s.Fallbacks != before.Fallbacks+1 || s.Tier0 != before.Tier0 {
			t.Errorf("%+v, before %+v", s, before)
		}
		fault.Set(fault.Launch, 1)
		if _, err := d.Try(unit); err == nil {
			t.Error("a try that should fail did not")
		}
	})
}

// TestChainChoices holds every choice of a chain against what its launches give
// one by one.
func TestChainChoices(t *testing.T) {
	for _, c := range []runtime.Config{{Threads: 2, Tier: -1}, {Threads: 2, Tier: 1}} {
		d := openTest(t, c)
		const rows, cols = 700, 1000
		x, y := mustAlloc(t, d, rows*cols*4), mustAlloc(t, d, rows*cols*4)
		data := make([]byte, rows*cols*4)
		for i := range data {
			data[i] = byte(i * 7 % 61) // no NaN
		}
		copy(bytesOf(x.(*buffer)), data)
		list := chained(t, d, x, y, rows, cols)
		choices := d.Choices(list[:2])
		if len(choices.List) < 4 || choices.Facts == "" {
			t.Fatalf("%+v", choices)
		}
		var want []byte
		for _, c := range choices.List {
			clear(bytesOf(y.(*buffer)))
			before := d.Stats()
			list[0].Choice = c.Code
			if _, err := d.Try(list[:2]); err != nil {
				t.Fatal(err)
			}
			if s := d.Stats(); s.Launches != before.Launches || s.Tier0 != before.Tier0 {
				t.Errorf("%s: a try was counted: %+v, before %+v", c.Name, s, before)
			}
			got := slices.Clone(bytesOf(y.(*buffer)))
			clear(bytesOf(y.(*buffer)))
			if err := d.Run(list[:2]); err != nil {
				t.Fatal(err)
			}
			if s := d.Stats(); s.Launches != before.Launches+2 {
				t.Errorf("%s: %d launches", c.Name, s.Launches-before.Launches)
			}
			if want == nil {
				want = slices.Clone(bytesOf(y.(*buffer)))
			}
			if !slices.Equal(got, want) || !slices.Equal(bytesOf(y.(*buffer)), want) {
				t.Errorf("%s gives something else", c.Name)
			}
		}
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
