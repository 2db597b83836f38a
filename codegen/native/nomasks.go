package native

import "github.com/millrace-go/millrace/ir"

// NoMasks are the methods that a target without masks, Reciprocals, Extremes and Sequences lacks.
type NoMasks struct{}

func (NoMasks) none()                                                   { panic("codegen/native: the target lacks this instruction") }
func (n NoMasks) LoadMask(uint8, Mem)                                   { n.none() }
func (n NoMasks) StoreMask(Mem, uint8)                                  { n.none() }
func (n NoMasks) SetMask(uint8, bool)                                   { n.none() }
func (n NoMasks) MaskFrom(uint8, GPR)                                   { n.none() }
func (n NoMasks) MaskTo(GPR, uint8)                                     { n.none() }
func (n NoMasks) FirstLanes(uint8, GPR, GPR)                            { n.none() }
func (n NoMasks) TestBit(GPR, GPR)                                      { n.none() }
func (n NoMasks) TestMask(int, Value) Value                             { n.none(); return 0 }
func (n NoMasks) ReciprocalOf(ir.DType, Value) Value                    { n.none(); return 0 }
func (n NoMasks) SpanOf(ir.DType, Value) Value                          { n.none(); return 0 }
func (n NoMasks) DivideBy(_ ir.DType, _, _, _, _ Value) Value           { n.none(); return 0 }
func (n NoMasks) JoinExtreme(*Accumulator, Kind, bool, Value, int, int) { n.none() }
func (n NoMasks) ExtremeOf(*Accumulator, Kind, bool) Value              { n.none(); return 0 }
func (n NoMasks) LoadPoints(Dense, int, bool, Value) Value              { n.none(); return 0 }
func (n NoMasks) StorePoints(Dense, Value, int, Value)                  { n.none() }
