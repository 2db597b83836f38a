//go:build cgo && unix

package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/internal/kerneltest"
	"github.com/millrace-go/millrace/runtime"
)

// A list is prepared while its kernels are interpreted; its runs have them compiled, after
// which it says that it would not run the same way any more.
func TestPreparedAwaitsCode(t *testing.T) {
	needCompiler(t)
	d := openTest(t, byC(runtime.Config{Threads: 2}))
	k := scaled(t)
	h := kerneltest.NewLaunch(rand.New(rand.NewPCG(5, 6)), k, []int64{1000}, 1, kerneltest.Dense)
	bound(t, d, k, h, func(l *runtime.Launch) {
		list := []runtime.Launch{*l, *l}
		tier0 := func() (n int64, done bool) {
			p := d.Prepare(list, nil)
			if p == nil {
				t.Fatal("not prepared")
			}
			defer p.Close()
			before := d.Stats().Tier0
			for range 2 * heatToCompile / heatOfLaunch {
				done, err := p.Run()
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					return d.Stats().Tier0 - before, false
				}
				d.comp.wait()
			}
			return d.Stats().Tier0 - before, true
		}
		if n, done := tier0(); n == 0 || done {
			t.Errorf("%d launches were interpreted, to the end: %v", n, done)
		}
		if n, done := tier0(); n != 0 || !done {
			t.Errorf("with code, %d launches were interpreted, to the end: %v", n, done)
		}
	})
}

// What differs between two writings of a list is an address of an operand, or an error.
func TestPreparedFinds(t *testing.T) {
	p := &prepared{}
	at := [2]placed{}
	list := []shifted{{buf: new(buffer), to: &at[0]}, {buf: new(buffer), to: &at[1]}}
	words := []uintptr{7, 100, 200, 108}
	first, second := shiftOf(0, 2), shiftOf(1, 2)
	if err := p.find(list, []uintptr{7, 100 + first, 200 + second, 108 + first}, words); err != nil {
		t.Fatal(err)
	}
	if x := at[0].at; len(x) != 2 || x[0] != (address{&words[1], 100}) || x[1] != (address{&words[3], 108}) {
		t.Errorf("operand 0 at %v", x)
	}
	if x := at[1].at; len(x) != 1 || x[0] != (address{&words[2], 200}) {
		t.Errorf("operand 1 at %v", x)
	}
	for what, moved := range map[string][]uintptr{
		"of nobody":           {7, 100 + first, 200 + shiftOf(2, 2), 108 + second},
		"between":             {7, 100 + first, 200 + second, 108 + 1},
		"back":                {7, 100 + first, 200 + second, 108 - first},
		"the distance of two": {7, 100 + first, 200 + second, 108 + second - first},
		"the sum of two":      {7, 100 + first, 200 + second, 108 + second + first},
		"an operand lacks":    {7, 100 + first, 200, 108},
		"fewer":               {7, 100},
	} {
		at = [2]placed{}
		if p.find(list, moved, words) == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
