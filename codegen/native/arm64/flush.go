package arm64

import (
	"math"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// If denormals are flushed, arm64 tests whether a result is tiny before rounding, ir.FlushDenormals
// after rounding. The two differ if rounding gives the least normal number. Sums are never inexact
// there, and quotients cannot be that close to it. So products need a correction, with or without a
// sum, and so do conversions to a narrower type. The same operation is repeated on operands so much
// larger that no result is tiny. If its result is the scaled least normal number, then the first
// result was wrongly flushed to zero, and becomes the least normal number.

// flushing holds the constants of a dtype: the scale and the least normal number.
type flushing struct {
	elem                  int
	scale, least, greater uint64 // greater is least times scale
}

func flushingOf(dt ir.DType) flushing {
	if dt == ir.Float64 {
		return flushing{8, math.Float64bits(0x1p512), math.Float64bits(0x1p-1022), math.Float64bits(0x1p-510)}
	}
	bits := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	return flushing{4, bits(0x1p64), bits(0x1p-126), bits(0x1p-62)}
}

// scaled multiplies an operand by the scale. This is exact, unless the operand is so large that the
// result cannot be tiny.
func (c *machine) scaled(dt ir.DType, x native.Value) native.Value {
	f, n := flushingOf(dt), c.Bytes(dt)
	o := nFmul
	if dt == ir.Float64 {
		o |= wide
	}
	return c.n2(o, n, x, c.Splat(f.elem, f.scale, n))
}

// roundedUp corrects results in r that were flushed but are not tiny. onceMore gives the scaled
// results.
func (c *machine) roundedUp(dt ir.DType, r native.Value, onceMore func() native.Value) native.Value {
	if c.Denormals != ir.FlushDenormals {
		return r
	}
	f, n, k := flushingOf(dt), c.Bytes(dt), native.Kinds[dt]
	o := nFcmeq
	if dt == ir.Float64 {
		o |= wide
	}
	is := c.n2(o, n, c.n1(nAbss[k], n, onceMore()), c.Splat(f.elem, f.greater, n))
	return c.n2(nOrr, n, r, c.n2(nAnd, n, is, c.Splat(f.elem, f.least, n)))
}

// neonScaling makes a primitive of a product, or of a product and a sum. Scaling its first and third
// operand scales the result.
func neonScaling(r *native.Row) primitive {
	return func(c *machine, in ir.Instr, x []native.Value, _ []ir.DType) native.Value {
		o, n := r[native.Kinds[in.DT]], c.Bytes(in.DT)
		compute := func(x []native.Value) native.Value {
			if len(x) == 3 {
				return c.n3(o, n, x[0], x[1], x[2])
			}
			return c.n2(o, n, x[0], x[1])
		}
		return c.roundedUp(in.DT, compute(x), func() native.Value {
			y := []native.Value{c.scaled(in.DT, x[0]), x[1]}
			if len(x) == 3 {
				y = append(y, c.scaled(in.DT, x[2]))
			}
			return compute(y)
		})
	}
}

// neonNarrow rounds to 32 bits.
func (c *machine) neonNarrow(v native.Value) native.Value {
	n := c.Bytes(ir.Float32)
	return c.roundedUp(ir.Float32, c.Op2(nFcvtn, n, n, v), func() native.Value {
		much := c.Splat(8, math.Float64bits(0x1p64), c.Bytes(ir.Float64))
		return c.Op2(nFcvtn, n, n, c.n2(nFmul|wide, c.Bytes(ir.Float64), v, much))
	})
}
