//go:build cgo && unix

package cpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// TestChoicesOfShippedKernels: what was found out with a compiler holds where its
// code came with the program and there is none. The choices that ran are followed
// in that code, and those that did not are refused when they are tried.
func TestChoicesOfShippedKernels(t *testing.T) {
	needCompiler(t)
	k := scaled(t)
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{300, 1000}, 2, kerneltest.Dense) // more than worthCode
	want := reference(t, k, h)
	won := uint64(turn(knobUnroll, 1))
	var made runtime.Choices
	maker := openTest(t, runtime.Config{Compile: runtime.CompileWait, Threads: 2})
	bound(t, maker, k, h, func(l *runtime.Launch) {
		l.Choice = won
		if err := maker.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
		made = maker.Choices([]runtime.Launch{*l})
	})
	if maker.comp.tools.version != builtBy() {
		t.Skip("timings of what one compiler made do not hold for another's: ", maker.comp.tools.version, builtBy())
	}
	src, err := PrintShipped("test", maker.noteTexts())
	if err != nil {
		t.Fatal(err)
	}
	best := 0
	for level := range levelNames {
		if hasLevel(level) {
			best = level
		}
	}
	shipOnly(t, src.built(t).atLevel(best))
	path := os.Getenv("PATH")
	for name, c := range map[string]runtime.Config{
		"nothing is compiled": {Compile: runtime.CompileOff, Threads: 2},
		"no compiler":         {Compile: runtime.CompileBackground, Threads: 2},
		"waits":               {Compile: runtime.CompileWait, Threads: 2},
	} {
		t.Setenv("PATH", path)
		if name == "no compiler" {
			t.Setenv("PATH", t.TempDir())
			t.Setenv("CC", "")
		}
		d := openTest(t, c)
		bound(t, d, k, h, func(l *runtime.Launch) {
			if got := d.Choices([]runtime.Launch{*l}); !reflect.DeepEqual(got, made) || len(got.List) < 3 {
				t.Errorf("%s: %+v, with a compiler alone %+v", name, got, made)
			}
			l.Choice = won
			if _, err := d.Try([]runtime.Launch{*l}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			compare(t, name, k, contents(t, d, k, h, l), want)
			if s := d.Stats(); s.Shipped != 1 || s.Fallbacks+s.Tier0+s.Compiles != 0 {
				t.Errorf("%s: %+v", name, s)
			}
			l.Choice = uint64(turn(knobUnroll, 2))
			if _, err := d.Try([]runtime.Launch{*l}); name != "waits" && !errors.Is(err, runtime.ErrLacking) || name == "waits" && err != nil {
				t.Errorf("%s: a try of what did not come with the program: %v", name, err)
			}
			if d.Possible([]runtime.Launch{*l}) != (name == "waits") {
				t.Errorf("%s: what did not come with the program is possible: %v", name, name != "waits")
			}
		})
	}
}

// TestFactsOfCode: timings are of code, so they do not hold for what another
// compiler made of a kernel, or for other instructions.
func TestFactsOfCode(t *testing.T) {
	needCompiler(t)
	k := scaled(t)
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 5)), k, []int64{300, 1000}, 2, kerneltest.Dense)
	var facts []string
	look := func(d *device) {
		t.Helper()
		var c runtime.Choices
		bound(t, d, k, h, func(l *runtime.Launch) {
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			c = d.Choices([]runtime.Launch{*l})
		})
		if c.Facts == "" || slices.Contains(facts, c.Facts) {
			t.Errorf("%q is among %q", c.Facts, facts)
		}
		facts = append(facts, c.Facts)
	}
	maker := openTest(t, runtime.Config{Compile: runtime.CompileWait, Threads: 2})
	look(maker)
	for _, what := range []string{"of " + ShipABI(), fmt.Sprint("for ", nativeISA().Bytes), "by " + maker.comp.tools.version} {
		if !strings.Contains(facts[0], " "+what+" ") {
			t.Errorf("no %q in %q", what, facts[0])
		}
	}
	maker.comp.tools.version += " and later"
	look(maker)
	maker.comp.tools.cc = append(maker.comp.tools.cc, "-O1")
	look(maker)
	maker.comp.tools.cc = append(maker.comp.tools.cc, "-g")
	look(maker)
	src, err := PrintShipped("test", maker.noteTexts())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(src.Kernels, func(s ShippedKernel) bool { return strings.Contains(facts[0], " code "+s.Form+" ") }) {
		t.Errorf("no form in %q", facts[0])
	}
	lib := src.built(t)
	for level := range levelNames {
		if !hasLevel(level) || levelISAs[level].Bytes == nativeISA().Bytes {
			continue
		}
		t.Run(levelNames[level], func(t *testing.T) {
			shipOnly(t, lib.atLevel(level))
			look(openTest(t, runtime.Config{Compile: runtime.CompileOff, Threads: 2}))
		})
	}
	look(openTest(t, runtime.Config{Compile: runtime.CompileOff, Threads: 2}))
}

// Chains' facts have their code in them, too.
func TestFactsOfChainCode(t *testing.T) {
	needCompiler(t)
	const rows, cols = 700, 1000
	d := openTest(t, runtime.Config{Compile: runtime.CompileWait, Threads: 2})
	x, y := mustAlloc(t, d, rows*cols*4), mustAlloc(t, d, rows*cols*4)
	list := chained(t, d, x, y, rows, cols)[:2]
	before := d.Choices(list).Facts
	if !strings.Contains(before, " by "+d.comp.tools.maker()+" dims") {
		t.Errorf("before a run %q", before)
	}
	if err := d.Run(list); err != nil {
		t.Fatal(err)
	}
	if after := d.Choices(list).Facts; after != before {
		t.Errorf("%q, before a run %q", after, before)
	}
	d.comp.tools.version += " and later"
	if after := d.Choices(list).Facts; after == before {
		t.Errorf("%q, of another compiler, too", after)
	}
}

// The version of a compiler is found in what it makes, and kept with the flags
// that it takes.
func TestCompilerVersion(t *testing.T) {
	needCompiler(t)
	cache := &mapCache{entries: map[string][]byte{}}
	var seen []string
	for range 2 {
		d := openTest(t, runtime.Config{Compile: runtime.CompileWait, Threads: 1, Cache: cache})
		maker, err := d.comp.maker()
		if err != nil || maker == "" || strings.HasPrefix(maker, "compiler ") {
			t.Errorf("%q, %v", maker, err)
		}
		seen = append(seen, maker)
	}
	if seen[0] != seen[1] || len(cache.entries) != 1 || cache.refused != 0 {
		t.Errorf("%q, %d entries, %d refused", seen, len(cache.entries), cache.refused)
	}
	for object, want := range map[string]string{
		"x\x00mr_made_by\x00mr_made_by 12.2.0\x00y": "12.2.0",
		"mr_made_by Some\n Clang 14 (x)\x00":        "Some Clang 14 (x)",
		"mr_made_by 12":                             "",
		"mr_made_by\x00":                            "",
		"":                                          "",
	} {
		if got := versionIn([]byte(object)); got != want {
			t.Errorf("%q in %q", got, object)
		}
	}
}
