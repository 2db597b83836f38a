package amd64

import (
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// The targets of amd64: AVX2 with FMA, and AVX-512 with F, BW, DQ and VL.
var (
	AVX2   = newISA("avx2", 32, 16, false)
	AVX512 = newISA("avx512", 64, 32, true)
)

// ISAs lists the targets.
var ISAs = []*native.ISA{AVX512, AVX2}

func newISA(name string, bytes, regs int, evex bool) *native.ISA {
	t := &native.ISA{Name: name, Bytes: bytes, Regs: regs, Masks: evex, Prefetches: true, Bypasses: true, Reciprocals: evex, Extremes: true, Sequences: true,
		LeastLanes: 4, TileRows: 6, AlongRows: 4, LinePieces: 2, Trap: 0xcc}
	t.Bytewise = map[ir.Op]native.Op{ir.Add: vpaddb, ir.Maximum: vpmaxub, ir.Minimum: vpminub, ir.Or: vpor, ir.And: vpand}
	if evex {
		t.TileRows, t.AlongRows, t.LinePieces = 14, 8, 4
	}
	for o, f := range primitives {
		t.Ops[o] = f != nil
	}
	t.New = func(b *native.Buffer, c *native.Builder) native.Machine {
		return &machine{Buffer: b, Builder: c, evex: evex}
	}
	return t
}

// machine makes code of amd64. It implements native.Machine.
type machine struct {
	*native.Buffer
	*native.Builder
	evex    bool     // AVX-512
	dot     *dotKind // of a contraction
	masksAt native.Mem
	masked  bool
}
