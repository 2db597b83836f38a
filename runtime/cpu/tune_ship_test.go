//go:build cgo && unix

package cpu

import (
	"testing"

	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/runtime"
)

// TestFactsOfShippedCode: what was found out with a compiler holds where the code
// came with the program, and not where there is none.
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
	if maker.contractsInTiles() != (made != "") {
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
	for mode, want := range map[runtime.CompileMode]string{runtime.CompileOff: "", runtime.CompileWait: made} {
		d := openTest(t, runtime.Config{Compile: mode, Threads: 2})
		if got := facts(d); got != want {
			t.Errorf("shipped %q, compiled %q", got, want)
		}
		if s := d.Stats(); s.Shipped != 1 || s.Compiles != 0 {
			t.Errorf("%+v", s)
		}
	}
}
