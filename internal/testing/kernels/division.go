package kernels

import (
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/millrace-go/millrace/ir"
)

// Division is a pair of floats with the results of FloorDiv and Rem, as bits.
type Division struct {
	X, Y, Floor, Rem uint64
	Exact            bool // Floor*Y + Rem equals X in exact arithmetic
}

// Divisions are about n pairs of dt, finite and without division by zero: any bits, ordinary sizes,
// whole numbers, and quotients at and next to integers up to sizes where not every integer is a
// float. The results are computed in exact arithmetic. The quotient is rounded down while every
// integer of its size is a float of the computing dtype, else it is the nearest float; the
// remainder belongs to the exact quotient, rounded once.
func Divisions(dt ir.DType, n int) []Division {
	r := rand.New(rand.NewPCG(5, 6))
	bits := func(v float64) uint64 { return ir.FloatBits(dt, v) }
	value := func(b uint64) float64 { return ir.BitsFloat(dt, b&(1<<dt.Bits()-1)) }
	fit := func(v float64) float64 { return value(bits(v)) }
	var list []Division
	add := func(x, y float64) {
		if x, y = fit(x), fit(y); x-x == 0 && y-y == 0 && y != 0 {
			list = append(list, divide(dt, x, y))
		}
	}
	for _, p := range [][2]float64{{19108036, 3}, {6, 3}, {16777215, 1}, {16777217, 1}, {1<<53 - 1, 1}, {1<<53 - 1, 3}, {1e-40, 1e30}} {
		add(p[0], p[1])
		add(-p[0], p[1])
		add(p[0], -p[1])
		add(-p[0], -p[1])
	}
	for i := range n {
		var x, y float64
		switch i % 5 {
		case 0:
			x, y = value(r.Uint64()), value(r.Uint64())
		case 1:
			x, y = r.NormFloat64()*100, r.NormFloat64()
		case 2:
			x, y = float64(r.Int64N(8<<dt.SignificantBits())), float64(1+r.IntN(2<<r.IntN(12)))
		case 3:
			y = fit(math.Ldexp(1+r.Float64(), r.IntN(40)-20))
			x = value(bits(float64(r.Int64N(2<<r.IntN(dt.SignificantBits())))*y) + uint64(r.IntN(5)) - 2)
		case 4: // of small and denormal numbers
			y = value(1 + r.Uint64N(1<<16))
			x = value(bits(float64(1+r.Int64N(1<<20))*y) + uint64(r.IntN(3)) - 1)
		}
		add(math.Copysign(x, float64(r.IntN(2))-0.5), math.Copysign(y, float64(r.IntN(2))-0.5))
	}
	return list
}

func divide(dt ir.DType, x, y float64) Division {
	rx, ry := new(big.Rat).SetFloat64(x), new(big.Rat).SetFloat64(y)
	quotient := new(big.Rat).Quo(rx, ry)
	floor := new(big.Rat).SetInt(new(big.Int).Div(quotient.Num(), quotient.Denom())) // by a positive number
	rem := new(big.Rat).Sub(rx, new(big.Rat).Mul(floor, ry))
	most := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(dt.Compute().SignificantBits())))
	want := floor
	if new(big.Rat).Abs(floor).Cmp(most) > 0 {
		want = quotient
	}
	d := Division{X: ir.FloatBits(dt, x), Y: ir.FloatBits(dt, y), Floor: bitsOf(dt, want), Rem: bitsOf(dt, rem)}
	if want.Sign() == 0 && math.Signbit(x) != math.Signbit(y) { // as the quotient of zeros and numbers
		d.Floor |= 1 << (dt.Bits() - 1)
	}
	if rem.Sign() == 0 && math.Signbit(y) {
		d.Rem |= 1 << (dt.Bits() - 1)
	}
	d.Exact = holds(dt, d.Floor, floor) && holds(dt, d.Rem, rem)
	return d
}

// bitsOf rounds a number to the dtype that dt computes in, and the result to dt.
func bitsOf(dt ir.DType, r *big.Rat) uint64 {
	f, _ := r.Float64()
	if dt.Compute() == ir.Float32 {
		narrow, _ := r.Float32()
		f = float64(narrow)
	}
	return ir.FloatBits(dt, f)
}

func holds(dt ir.DType, bits uint64, r *big.Rat) bool {
	f := new(big.Rat).SetFloat64(ir.BitsFloat(dt, bits))
	return f != nil && f.Cmp(r) == 0
}
