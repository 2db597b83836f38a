//go:build cgo && unix

package cpu

import (
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// TestContractProbed checks that functions with wrong results are refused and counted.
func TestContractProbed(t *testing.T) {
	f, err := newCDot(ir.Int32)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.probed(ir.Int32); got != f || err != nil {
		t.Errorf("right ones: %v", err)
	}
	before := lesserRefused.Load()
	if got, err := f.probed(ir.Float32); got != nil || err == nil {
		t.Error("floats as integers pass")
	}
	if n := lesserRefused.Load() - before; n != 1 {
		t.Errorf("%d refused", n)
	}
}

// TestContractSource checks the choice of functions: C functions flush nothing, and only Go's
// loops are used if compiling is off.
func TestContractSource(t *testing.T) {
	c := dotSource{c: true}
	for _, dt := range contractDTypes {
		_, err := c.code(dt)
		if floats := floatBitsOf[dt] != nil; c.tiles(dt, false) != (narrowDots[dt] != nil || err == nil) || floats && c.tiles(dt, true) {
			t.Errorf("%v: tiles %t, flushed %t, %v", dt, c.tiles(dt, false), c.tiles(dt, true), err)
		}
		if f, err := (dotSource{}).code(dt); f != nil || err == nil || (dotSource{}).tiles(dt, false) {
			t.Errorf("%v: nobody's %v", dt, f)
		}
	}
	if _, err := c.code(ir.Float32); err != nil && err != errNoFMA {
		t.Error(err)
	}
}
