package cpu

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
)

// TestWhoMakesCode checks who makes code of kernels, for every mode and tier.
func TestWhoMakesCode(t *testing.T) {
	target := machine.Level() != machine.None
	for _, c := range []struct {
		mode      runtime.CompileMode
		native, c bool
	}{
		{runtime.CompileBackground, true, true}, {runtime.CompileWait, true, true}, {runtime.CompileOff, false, false},
		{runtime.CompileNative, true, false}, {runtime.CompileC, false, true},
	} {
		for _, tier := range []int{-1, 0, 1} {
			var told []string
			d := opened(t, runtime.Config{Compile: c.mode, Tier: tier, Threads: 1, OnError: func(err error) { told = append(told, err.Error()) }})
			if got, want := d.machine, c.native && tier >= 0 && target; got != want {
				t.Errorf("mode %d, tier %d: machine code %v, want %v", c.mode, tier, got, want)
			}
			if got, want := d.compilesC(), ccode.Supported && c.c && tier >= 0 && !(c.native && target); got != want {
				t.Errorf("mode %d, tier %d: compilers %v, want %v", c.mode, tier, got, want)
			}
			dots := contract.Source{C: ccode.Supported && tier >= 0 && c.mode != runtime.CompileOff}
			if tier >= 0 && c.mode != runtime.CompileOff {
				dots.Level = machine.Level()
			}
			if d.dots != dots {
				t.Errorf("mode %d, tier %d: contractions by %v, want %v", c.mode, tier, d.dots, dots)
			}
			if d.comp != nil && !d.compilesC() {
				t.Errorf("mode %d, tier %d: there is a compiler", c.mode, tier)
			}
			lacks := c.mode == runtime.CompileNative && tier >= 0 && !target
			if lacks != (len(told) == 1 && strings.Contains(told[0], "compile=native")) || lacks != (d.Stats().Fallbacks == 1) {
				t.Errorf("mode %d, tier %d: %d fallbacks, told %q", c.mode, tier, d.Stats().Fallbacks, told)
			}
		}
	}
}

// TestNativeBytes checks that bytes of machine code are counted while they are mapped.
func TestNativeBytes(t *testing.T) {
	d := openTest(t, runtime.Config{Threads: 1})
	if !machine.Supported() {
		t.Skip("no machine code on this system")
	}
	code, err := machine.Map([]byte{0xC3})
	if err != nil {
		t.Fatal(err)
	}
	defer code.Free()
	if n := d.Stats().NativeBytes; n < int64(code.Bytes()) {
		t.Errorf("%d bytes, want %d at least", n, code.Bytes())
	}
}
