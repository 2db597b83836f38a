package native

import "unsafe"

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

// NewRoof makes a Roof.
func NewRoof(isa *ISA) (*Roof, error) {
	a := &asm{isa: isa}
	g := &dotGen{asm: a, dotKind: dotF32}
	chains := isa.Regs - 2
	r := &Roof{Flops: 2 * chains * isa.Bytes / 4, CopyBytes: roofUnroll * isa.Bytes}
	r.FMA = g.multiplyAdds("multiply and add", vfmadd231ps, chains)
	r.FMA64 = g.multiplyAdds("multiply and add float64", vfmadd231pd, chains)
	r.Copy = g.copies("copy", vmovupsTo)
	r.CopyPast = g.copies("copy past the caches", vmovntps)
	r.Read = g.copies("read", opNone)
	var err error
	r.Code, err = a.finish()
	return r, err
}

func (g *dotGen) multiplyAdds(what string, fma op, chains int) int {
	var f RoofFrame
	start := g.begin("%s", what)
	for i := range chains + 2 {
		g.vec3(vpxor, uint8(i), uint8(i), inReg(uint8(i)))
	}
	g.load(tileK, field(unsafe.Offsetof(f.Count)))
	loop := g.newLabel()
	g.align(64)
	g.place(loop)
	for i := range chains {
		g.vec3(fma, uint8(i), uint8(chains), inReg(uint8(chains+1)))
	}
	g.opImm(sub, ofGPR(tileK), 1)
	g.jumpIf(notEqual, loop)
	g.ret()
	return start
}

// copies is a loop that loads and, unless store is opNone, stores.
func (g *dotGen) copies(what string, store op) int {
	var f RoofFrame
	at0 := g.begin("%s", what)
	loop := g.newLabel()
	g.load(rsi, field(unsafe.Offsetof(f.Src)))
	g.load(rdx, field(unsafe.Offsetof(f.Dst)))
	g.load(tileK, field(unsafe.Offsetof(f.Count)))
	g.align(64)
	g.place(loop)
	each := roofUnroll
	if store == opNone {
		each /= 2
	}
	for i := range each {
		g.vec3(vmovups, uint8(i), 0, inMem(at(rsi, i*g.isa.Bytes)))
	}
	for i := range each {
		second := inMem(at(rdx, i*g.isa.Bytes))
		if store == opNone {
			g.vec3(vmovups, uint8(each+i), 0, second)
		} else {
			g.vec3(store, uint8(i), 0, second)
		}
	}
	g.opImm(add, ofGPR(rsi), each*g.isa.Bytes)
	g.opImm(add, ofGPR(rdx), each*g.isa.Bytes)
	g.opImm(sub, ofGPR(tileK), 1)
	g.jumpIf(notEqual, loop)
	if store == vmovntps {
		g.sfence()
	}
	g.ret()
	return at0
}
