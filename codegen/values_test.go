package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/ir"
)

// The table finds the same as a map, for all instructions, also while it grows and if many
// instructions have the same slot.
func TestValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, room := range []int{0, 1, 100} {
		v, want := newValues(room), map[ir.Instr]ir.Ref{}
		for i := range 5000 {
			in := ir.Instr{Op: ir.Op(rng.IntN(3)), DT: ir.DType(rng.IntN(2)), Imm: rng.Uint64N(4) << 61}
			for j := range in.Args {
				in.Args[j] = ir.Ref(rng.IntN(5) - 1)
			}
			have, ok := v.find(in)
			if w, there := want[in]; ok != there || ok && have != w {
				t.Fatalf("room for %d, step %d: %v is %d, %v; want %d, %v", room, i, in, have, ok, w, there)
			}
			if rng.IntN(2) == 0 {
				v.add(in, ir.Ref(i))
				want[in] = ir.Ref(i)
			}
		}
		if len(v.known) != len(want) || 2*len(v.known) > len(v.slots) {
			t.Errorf("room for %d: %d known, %d slots, want %d", room, len(v.known), len(v.slots), len(want))
		}
	}
}

// Instructions of a body differ in few bits: they should not share slots.
func TestValuesSpread(t *testing.T) {
	v := newValues(1024)
	shared := 0
	for i := range 1024 {
		in := ir.Instr{Op: ir.Add, DT: ir.Float32, Args: [4]ir.Ref{ir.Ref(i), ir.Ref(i - 1), ir.None, ir.None}}
		if v.slots[hash(in)&uint64(len(v.slots)-1)] != 0 {
			shared++
		}
		v.add(in, ir.Ref(i))
	}
	if shared > 400 { // by chance 20 % of them
		t.Errorf("%d of 1024 share a slot", shared)
	}
}
