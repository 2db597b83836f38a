package cpu

import (
	"math"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// TestProbe holds that the probe passes what is right, and sees what compiler
// flags for fast arithmetic do.
func TestProbe(t *testing.T) {
	for name, call := range callers(t) {
		if err := probe(call); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	flush := func(in *t0Instr, v []t0Val, groups int) {
		goCall(in, v, groups)
		for i := range groups * groupLen {
			p := (*float32)(unsafe.Add(v[in.dst].p, 4*i))
			if math.Abs(float64(*p)) < 0x1p-126 {
				*p = 0
			}
		}
	}
	if probe(flush) == nil {
		t.Error("flushed denormals pass")
	}
	iota := blockFn(fnKey{op: ir.Iota, dt: ir.Float32})
	contract := func(in *t0Instr, v []t0Val, groups int) {
		goCall(in, v, groups)
		if in.fn != iota {
			return
		}
		for i := range groups * groupLen {
			at := func(s int) float32 { return *(*float32)(unsafe.Add(v[s].p, 4*i)) }
			n := *(*uint32)(unsafe.Add(v[0].p, 4*i))
			*(*float32)(unsafe.Add(v[in.dst].p, 4*i)) = ir.FMA32(float32(n), at(3), at(2))
		}
	}
	if probe(contract) == nil {
		t.Error("a contracted product passes")
	}
}

// TestBlockProbeResults holds what probes want to the oracle.
func TestBlockProbeResults(t *testing.T) {
	for i := range blockProbes {
		p := &blockProbes[i]
		dts := p.argDTypes()
		if p.op.Info().Indexed {
			dts = dts[2:]
		}
		if want := ir.EvalOp(p.op, p.dt, dts, p.args); !sameBits(p.dt, p.want, want) {
			t.Errorf("%d: %v of %v%x is to give %#x, the oracle has %#x", i, p.op, p.in(), p.args, p.want, want)
		}
	}
}

// TestNativeLevel holds that C functions are used where they exist.
func TestNativeLevel(t *testing.T) {
	if nativeCallers() == nil {
		t.Skip("built without cgo")
	}
	if level, err := nativeLevel(); level < 0 {
		t.Error(err)
	}
}
