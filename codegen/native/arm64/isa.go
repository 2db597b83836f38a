package arm64

import "github.com/millrace-go/millrace/codegen/native"

// NEON is arm64. It has one register more, which is scratch for values that take several instructions.
var NEON = newISA()

func newISA() *native.ISA {
	t := &native.ISA{Name: "neon", Bytes: 16, Regs: 31, LeastLanes: 2, TileRows: 8, AlongRows: 8, LinePieces: 4}
	for o, f := range primitives {
		t.Ops[o] = f != nil
	}
	t.New = func(b *native.Buffer, c *native.Builder) native.Machine { return &machine{Buffer: b, Builder: c} }
	return t
}

// machine makes code of arm64.
type machine struct {
	*native.Buffer
	*native.Builder
	native.NoMasks
	dot *dotKind
}
