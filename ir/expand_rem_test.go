package ir_test

import (
	"testing"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
)

// divisions is a number of pairs. A quarter of them has thousands of each kind that kernels.Divisions
// makes, which is enough for other builds: an emulator takes minutes for the exact arithmetic of all.
func divisions(all int) int {
	if testing.Short() {
		return all / 4
	}
	return all
}

// FloorDiv and Rem are compared with exact arithmetic.
func TestFloorDivExact(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16} {
		wrong, exact := 0, 0
		list := kernels.Divisions(dt, divisions(60000))
		for _, d := range list {
			eval := func(op ir.Op) uint64 { return ir.EvalOp(op, dt, []ir.DType{dt, dt}, []uint64{d.X, d.Y}) }
			floor, rem := eval(ir.FloorDiv), eval(ir.Rem)
			if floor != d.Floor || rem != d.Rem {
				if wrong++; wrong < 10 {
					f := func(bits uint64) float64 { return ir.BitsFloat(dt, bits) }
					t.Errorf("%v: %v by %v is %v, remainder %v, want %v and %v", dt, f(d.X), f(d.Y), f(floor), f(rem), f(d.Floor), f(d.Rem))
				}
			}
			if d.Exact {
				exact++
			}
		}
		if wrong > 0 {
			t.Errorf("%v: %d of %d pairs are wrong", dt, wrong, len(list))
		}
		if exact < len(list)/5 {
			t.Errorf("%v: FloorDiv*y + Rem = x can hold for %d of %d pairs only", dt, exact, len(list))
		}
	}
}

// A device whose division has an error of up to 2.5 units in the last place, as WGSL allows, still
// gives correct integral quotients: 6/3 is 2 with remainder 0.
func TestFloorDivOfRoughDivision(t *testing.T) {
	dts := []ir.DType{ir.Float32, ir.Float32}
	for _, d := range kernels.Divisions(ir.Float32, divisions(20000)) {
		if q := ir.BitsFloat(ir.Float32, d.Floor); q >= 1<<20 || q <= -1<<20 {
			continue
		}
		for off := range uint64(5) {
			for op, want := range map[ir.Op]uint64{ir.FloorDiv: d.Floor, ir.Rem: d.Rem} {
				if got := evalRough(ir.Expansion(op, ir.Float32, dts), off-2, d.X, d.Y); got != want && ir.BitsFloat(ir.Float32, got) != ir.BitsFloat(ir.Float32, want) {
					f := func(bits uint64) float64 { return ir.BitsFloat(ir.Float32, bits) }
					t.Fatalf("%v of %v by %v is %v, want %v, where division is off by %d units", op, f(d.X), f(d.Y), f(got), f(want), int64(off-2))
				}
			}
		}
	}
}

// evalRough runs a program whose quotients, unless they are 0, have an error of so many units in
// the last place.
func evalRough(p *ir.Prog, off uint64, params ...uint64) uint64 {
	vals := make([]uint64, len(p.Code))
	for i, in := range p.Code {
		if in.Op == ir.Param {
			vals[i] = params[in.Imm]
			continue
		}
		var args []uint64
		var dts []ir.DType
		for _, a := range in.Args {
			if a != ir.None {
				args, dts = append(args, vals[a]), append(dts, p.Code[a].DT)
			}
		}
		vals[i] = ir.EvalPrim(in, dts, args)
		if in.Op == ir.FDiv && vals[i]&0x7fffffff > 2 {
			vals[i] += off
		}
	}
	return vals[p.Results[0]]
}
