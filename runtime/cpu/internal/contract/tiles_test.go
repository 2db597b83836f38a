//go:build cgo && unix

package contract

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// TestContractProbed checks that functions with wrong results are refused and counted.
func TestContractProbed(t *testing.T) {
	f, err := newC(ir.Int32)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.probed(ir.Int32); got != f || err != nil {
		t.Errorf("right ones: %v", err)
	}
	before := jit.Refused.Load()
	if got, err := f.probed(ir.Float32); got != nil || err == nil {
		t.Error("floats as integers pass")
	}
	if n := jit.Refused.Load() - before; n != 1 {
		t.Errorf("%d refused", n)
	}
}

// TestContractSource checks the choice of functions: C functions flush nothing, and only Go's
// loops are used if compiling is off.
func TestContractSource(t *testing.T) {
	c := Source{C: true}
	for _, dt := range contractDTypes {
		_, err := c.functions(dt)
		if floats := floatBitsOf[dt] != nil; c.Tiles(dt, false) != (converters[dt] != nil || err == nil) || floats && c.Tiles(dt, true) {
			t.Errorf("%v: tiles %t, flushed %t, %v", dt, c.Tiles(dt, false), c.Tiles(dt, true), err)
		}
		if f, err := (Source{}).functions(dt); f != nil || err == nil || (Source{}).Tiles(dt, false) {
			t.Errorf("%v: nobody's %v", dt, f)
		}
	}
	if _, err := c.functions(ir.Float32); err != nil && err != errNoFMA {
		t.Error(err)
	}
}
