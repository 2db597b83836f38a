package native

import (
	"unsafe"

	"github.com/millrace-go/millrace/ir"
)

// The limits of a core: code that only multiplies and adds, and code that only copies or reads.

// Roof is such code. Its numbers are offsets of functions, which are called with a RoofFrame.
type Roof struct {
	Code []byte
	// FMA multiplies and adds floats in as many chains as registers allow: Flops operations for each
	// of Count. FMA64 does the same with float64, for which a vector has half as many elements.
	FMA, FMA64 int
	Flops      int
	// Copy copies Count times CopyBytes; CopyPast does so past the caches.
	Copy, CopyPast int
	CopyBytes      int
	// Read loads Count times CopyBytes and does not use them: half of them from Src on and half from
	// Dst on, since processors prefetch from two places faster than from one.
	Read int
}

// RoofFrame is the argument of these functions.
type RoofFrame struct {
	Dst, Src unsafe.Pointer // aligned to vectors
	Count    int64          // at least 1
}

// roofUnroll is the number of repetitions in the body of a loop.
const roofUnroll = 8

const roofPast = "copy past the caches"

// NewRoof makes a Roof.
func NewRoof(isa *ISA) (*Roof, error) {
	b := &Buffer{ISA: isa}
	g := &dotGen{Buffer: b, Machine: isa.New(b, nil)}
	chains := isa.Regs - 2
	r := &Roof{Flops: 2 * chains * isa.Bytes / 4, CopyBytes: roofUnroll * isa.Bytes}
	r.FMA = g.multiplyAdds("multiply and add", ir.Float32, chains)
	r.FMA64 = g.multiplyAdds("multiply and add float64", ir.Float64, chains)
	r.Copy = g.copies("copy", g.StoreVec)
	r.CopyPast = g.copies(roofPast, g.StorePast)
	r.Read = g.copies("read", nil)
	var err error
	r.Code, err = b.Finish(g.Machine)
	return r, err
}

func (g *dotGen) multiplyAdds(what string, dt ir.DType, chains int) int {
	var f RoofFrame
	g.Elements(dt)
	start := g.begin("%s", what)
	for i := range chains + 2 {
		g.ClearVec(uint8(i), g.ISA.Bytes)
	}
	g.Load(TileK, Field(unsafe.Offsetof(f.Count)))
	loop := g.NewLabel()
	g.align(64)
	g.Place(loop)
	for i := range chains {
		g.Multiply(nil, uint8(i), uint8(chains), InReg(uint8(chains+1)), 0)
	}
	g.OpImm(Sub, OfGPR(TileK), 1)
	g.JumpIf(NotEqual, loop)
	g.Ret()
	return start
}

// copies is a loop that loads and, unless store is nil, stores.
func (g *dotGen) copies(what string, store func(m Mem, size int, r uint8)) int {
	var f RoofFrame
	at0 := g.begin("%s", what)
	loop := g.NewLabel()
	g.Load(RSI, Field(unsafe.Offsetof(f.Src)))
	g.Load(RDX, Field(unsafe.Offsetof(f.Dst)))
	g.Load(TileK, Field(unsafe.Offsetof(f.Count)))
	g.align(64)
	g.Place(loop)
	each := roofUnroll
	if store == nil {
		each /= 2
	}
	for i := range each {
		g.LoadVec(uint8(i), g.ISA.Bytes, At(RSI, i*g.ISA.Bytes))
	}
	for i := range each {
		second := At(RDX, i*g.ISA.Bytes)
		if store == nil {
			g.LoadVec(uint8(each+i), g.ISA.Bytes, second)
		} else {
			store(second, g.ISA.Bytes, uint8(i))
		}
	}
	g.OpImm(Add, OfGPR(RSI), each*g.ISA.Bytes)
	g.OpImm(Add, OfGPR(RDX), each*g.ISA.Bytes)
	g.OpImm(Sub, OfGPR(TileK), 1)
	g.JumpIf(NotEqual, loop)
	if what == roofPast {
		g.Fence()
	}
	g.Ret()
	return at0
}
