//go:build cgo && unix

package cpu

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// TestFactsOfShippedCode checks that facts found with a compiler are valid for code compiled into
// the program, and not valid without code.
func TestFactsOfShippedCode(t *testing.T) {
	needCompiler(t)
	force.SetChoice(0) // small launches have choices, too
	defer force.SetChoice(-1)
	k, c := rowKernel(t, dotKernels["around"]), dotCases[0]
	h := dotCase(k, c.dims, map[string]int64{"i": 50, "j": 130, "k": 300, "b": 2}, c.left, c.right, c.bias, c.residual, c.result)
	facts := func(d *device) (facts string) {
		hold(t, d, k)
		bound(t, d, k, h, func(l *runtime.Launch) {
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			facts = d.Choices(l).Facts
		})
		return facts
	}
	maker := openTest(t, byC(runtime.Config{Compile: runtime.CompileWait, Threads: 2}))
	made := facts(maker)
	if maker.dots.tiles(ir.Float32, false) != (made != "") {
		t.Errorf("compiled %q", made)
	}
	if none := facts(openTest(t, runtime.Config{Compile: runtime.CompileOff, Threads: 2})); none != "" {
		t.Errorf("interpreted %q, where there are no tiles", none)
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
	beside := made // the facts if machine code is a choice, too
	if machineISA() != nil {
		beside = strings.Replace(made, " compiled ", " brought ", 1)
	}
	for mode, want := range map[runtime.CompileMode]string{runtime.CompileOff: "", runtime.CompileC: made, runtime.CompileWait: beside} {
		d := openTest(t, runtime.Config{Compile: mode, Threads: 2})
		if got := facts(d); got != want {
			t.Errorf("shipped %q, compiled %q", got, want)
		}
		if s := d.Stats(); s.Shipped != 1 || s.Compiles != 0 {
			t.Errorf("%+v", s)
		}
	}
}

// TestBroughtOrOwn checks that machine code is a choice beside code compiled into the program,
// with the same bits, and does not count as shipped code.
func TestBroughtOrOwn(t *testing.T) {
	needCompiler(t)
	if machineISA() == nil {
		t.Skip("no machine code here")
	}
	force.SetChoice(0) // small launches have choices, too
	defer force.SetChoice(-1)
	k := rowKernel(t, "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = max %0 : float32\n%2 = sub %0 %1 : float32\n%3 = exp %2 : float32\nstore 1 %3\n")
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(23, 1)), k, []int64{30, 200}, 1, kerneltest.Dense)
	want := reference(t, k, h)
	maker := openTest(t, byC(runtime.Config{Compile: runtime.CompileWait, Threads: 2}))
	compare(t, "compiled", k, onDevice(t, maker, k, h), want)
	src, err := PrintShipped("test", maker.noteTexts())
	if err != nil {
		t.Fatal(err)
	}
	shipOnly(t, src.built(t).atLevel(0))
	d := opened(t, runtime.Config{Compile: runtime.CompileWait, Threads: 2})
	hold(t, d, k)
	bound(t, d, k, h, func(l *runtime.Launch) {
		list := d.Choices(l).List
		if len(list) != 2 || list[1].Name != "code=native" {
			t.Fatalf("choices %v", list)
		}
		for i, x := range list {
			l.Choice = x.Code
			before := d.Stats()
			if err := d.Run([]runtime.Launch{*l}); err != nil {
				t.Fatal(err)
			}
			compare(t, x.Name, k, contents(t, d, k, h, l), want)
			p := d.Prepare([]runtime.Launch{*l, *l}, nil)
			if p == nil {
				t.Fatal("not prepared")
			}
			if done, err := p.Run(); !done || err != nil {
				t.Fatal(done, err)
			}
			p.Close()
			compare(t, "prepared, "+x.Name, k, contents(t, d, k, h, l), want)
			s := d.Stats()
			if shipped := s.Shipped - before.Shipped; shipped != 3*int64(1-i) || s.NativeKernels != int64(i) || s.Tier0 != before.Tier0 {
				t.Errorf("%s: %d launches by the program's code, %d kernels, %d interpreted", x.Name, shipped, s.NativeKernels, s.Tier0-before.Tier0)
			}
		}
	})
}
