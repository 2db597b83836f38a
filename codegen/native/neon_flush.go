package native

import (
	"math"

	"github.com/millrace-go/millrace/ir"
)

// Where denormals are flushed, arm64 takes a result for tiny by what it is before it is
// rounded, ir.FlushDenormals by what it is afterwards: they differ where it is rounded up
// to the least normal number. Sums are never inexact there, and quotients of numbers of
// so many digits never that close to it, so that it is seen to for products, with or
// without a sum, and for what is made narrower: the same is computed once more of
// operands so much larger that nothing is tiny, and where that is the least normal
// number, so much larger, the result, which was flushed to a zero, is that number.

// flushing are the constants of a dtype: how much larger, and the least normal number.
type flushing struct {
	elem                  int
	scale, least, greater uint64 // greater is least, so much larger
}

func flushingOf(dt ir.DType) flushing {
	if dt == ir.Float64 {
		return flushing{8, math.Float64bits(0x1p512), math.Float64bits(0x1p-1022), math.Float64bits(0x1p-510)}
	}
	bits := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	return flushing{4, bits(0x1p64), bits(0x1p-126), bits(0x1p-62)}
}

// scaled is an operand so much larger: exactly so, unless it is far too large for the
// result to be tiny.
func (c *code) scaled(dt ir.DType, x value) value {
	f, n := flushingOf(dt), c.bytes(dt)
	o := nFmul
	if dt == ir.Float64 {
		o |= wide
	}
	return c.n2(o, n, x, c.splat(f.elem, f.scale, n))
}

// roundedUp is r with what was flushed but is not tiny, which once more tells.
func (c *code) roundedUp(dt ir.DType, r value, onceMore func() value) value {
	if c.k.Denormals != ir.FlushDenormals {
		return r
	}
	f, n, k := flushingOf(dt), c.bytes(dt), kinds[dt]
	o := nFcmeq
	if dt == ir.Float64 {
		o |= wide
	}
	is := c.n2(o, n, c.n1(nAbss[k], n, onceMore()), c.splat(f.elem, f.greater, n))
	return c.n2(nOrr, n, r, c.n2(nAnd, n, is, c.splat(f.elem, f.least, n)))
}

// neonScaling makes a primitive of a product, or of one and a sum, which is as much larger
// as its first and its third operand are.
func neonScaling(r *row) primitive {
	return func(c *code, in ir.Instr, x []value, _ []ir.DType) value {
		o, n := r[kinds[in.DT]], c.bytes(in.DT)
		compute := func(x []value) value {
			if len(x) == 3 {
				return c.n3(o, n, x[0], x[1], x[2])
			}
			return c.n2(o, n, x[0], x[1])
		}
		return c.roundedUp(in.DT, compute(x), func() value {
			y := []value{c.scaled(in.DT, x[0]), x[1]}
			if len(x) == 3 {
				y = append(y, c.scaled(in.DT, x[2]))
			}
			return compute(y)
		})
	}
}

// neonNarrow rounds to 32 bits.
func (c *code) neonNarrow(v value) value {
	n := c.bytes(ir.Float32)
	return c.roundedUp(ir.Float32, c.op2(nFcvtn, n, n, v), func() value {
		much := c.splat(8, math.Float64bits(0x1p64), c.bytes(ir.Float64))
		return c.op2(nFcvtn, n, n, c.n2(nFmul|wide, c.bytes(ir.Float64), v, much))
	})
}
