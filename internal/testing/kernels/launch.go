package kernels

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Launch is a launch on host memory: Args hold one operand each, without shared memory.
type Launch struct {
	Dims    []int64
	Kept    int
	Args    []codegen.HostArg
	Scalars []uint64
}

// NewLaunch fills operands with values that reveal errors: every pattern of bits, small numbers,
// and each dtype's special ones.
func NewLaunch(rng *rand.Rand, k *codegen.Kernel, dims []int64, kept int, how Pattern) *Launch {
	l := &Launch{Dims: dims, Kept: kept}
	for i, o := range k.Operands {
		a := codegen.HostArg{}
		how, dims := how, dims
		if slices.ContainsFunc(k.Reduces, func(r codegen.Reduce) bool { return r.Operand == i }) {
			how, dims = Dense, nil // a total is constant
		}
		n := how.access(rng, &a.Access, dims, kept, o.Kind == codegen.Output, o.Row)
		if o.Kind != codegen.Index {
			a.Data = make([]byte, n*int64(o.DT.Size()))
			for e := range n {
				put(a.Data, o.DT, e, Value(rng, o.DT))
			}
		}
		l.Args = append(l.Args, a)
	}
	for _, dt := range k.Scalars {
		l.Scalars = append(l.Scalars, Value(rng, dt))
	}
	return l
}

func put(data []byte, dt ir.DType, i int64, bits uint64) {
	ir.StoreBits(dt, data[i*int64(dt.Size()):], bits)
}

func get(data []byte, dt ir.DType, i int) uint64 { return ir.LoadBits(dt, data[i*dt.Size():]) }

var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 2, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-310,
	math.MaxFloat32, math.SmallestNonzeroFloat32, math.MaxFloat64, 88.7, -104, 710, 3.5, 2.5, 1 << 31, -(1 << 63), 1e22, 255.5}

// Value is a value of dt, as its bits.
func Value(rng *rand.Rand, dt ir.DType) uint64 {
	if dt == ir.Bool {
		return rng.Uint64() & 1
	}
	if dt.IsFloat() {
		x := rng.NormFloat64() * 3
		switch rng.IntN(8) {
		case 0:
			x = specials[rng.IntN(len(specials))]
		case 1:
			return rng.Uint64() >> (64 - dt.Bits())
		case 2:
			x *= 1e4
		case 3:
			x = math.Round(x)
		}
		return ir.FloatBits(dt, x)
	}
	mask := uint64(math.MaxUint64) >> (64 - dt.Bits())
	switch rng.IntN(6) {
	case 0:
		return []uint64{0, 1, mask, mask >> 1, mask>>1 + 1, 2, 31, 32, 63, 64}[rng.IntN(10)] & mask
	case 1:
		return rng.Uint64() & mask
	}
	return uint64(rng.Int64N(200)-100) & mask
}

// Same compares memory as a dtype; any NaN equals any other. The error names the first difference.
func Same(dt ir.DType, got, want []byte) error {
	if bytes.Equal(got, want) { // nearly always
		return nil
	}
	for i := range len(want) / dt.Size() {
		g, w := get(got, dt, i), get(want, dt, i)
		if !ir.SameValue(dt, g, w) {
			return fmt.Errorf("element %d of %v: got %#x, want %#x", i, dt, g, w)
		}
	}
	return nil
}

// Pattern is a kind of access to operands.
type Pattern int

// Mixed uses another pattern for each operand.
const (
	Dense Pattern = iota
	Broadcast
	Stepped
	Permuted
	Viewed // through a stage
	Mixed
	NumPatterns
)

// access makes a random access and returns the number of elements that it needs. Two points that
// store never share an element of an output.
func (how Pattern) access(rng *rand.Rand, a *runtime.Access, dims []int64, kept int, output, row bool) int64 {
	if how == Mixed {
		how = Pattern(rng.IntN(int(Mixed)))
	}
	rank := len(dims)
	order := rng.Perm(rank)
	if how != Permuted {
		for i := range order {
			order[i] = i
		}
	}
	n, step := int64(1), int64(1)
	if how == Stepped {
		step = 2 + rng.Int64N(2)
	}
	for i := rank - 1; i >= 0; i-- {
		d := order[i]
		if row && d >= kept || how == Broadcast && rng.IntN(2) == 0 {
			continue
		}
		a.Stride[d] = n * step
		if how == Stepped && !output && rng.IntN(3) == 0 { // backwards
			a.Stride[d] = -n * step
			a.Offset += n * step * (dims[d] - 1)
		}
		n *= dims[d]
	}
	n *= step
	if how == Viewed {
		// The linear position goes through a transposed pair of dims.
		total := n
		inner := int64(1)
		for _, f := range []int64{2, 3, 5, 7} {
			if total%f == 0 && total > f {
				inner = f
			}
		}
		a.Stages = []runtime.Stage{{Offset: 3, Dims: []int64{total / inner, inner}, Stride: []int64{1, total / inner}}}
		return n + 3
	}
	a.Offset += 5
	return n + 5
}

// FillTiny fills the inputs of a launch with denormal numbers, numbers with denormal sums and
// products, and some others.
func FillTiny(rng *rand.Rand, k *codegen.Kernel, l *Launch) {
	for i, a := range l.Args {
		dt := k.Operands[i].DT
		if k.Operands[i].Kind != codegen.Input || !dt.IsFloat() {
			continue
		}
		for at := range int64(len(a.Data) / dt.Size()) {
			if rng.IntN(8) > 0 {
				put(a.Data, dt, at, Tiny(rng, dt))
			}
		}
	}
	for i, dt := range k.Scalars {
		if dt.IsFloat() {
			l.Scalars[i] = Tiny(rng, dt)
		}
	}
}

// Tiny is such a number, as its bits.
func Tiny(rng *rand.Rand, dt ir.DType) uint64 {
	digits := dt.SignificantBits() - 1
	bias := 1<<(dt.Bits()-2-digits) - 1
	e := []int{0, 0, 0, 1, 1, 2, digits, bias / 2, bias - digits, bias, bias + 3, 3 * bias / 2}[rng.IntN(12)]
	m := []uint64{0, 1, 1<<digits - 1, 1 << (digits - 1), rng.Uint64(), rng.Uint64()}[rng.IntN(6)] & (1<<digits - 1)
	return uint64(e)<<digits | m | rng.Uint64N(2)<<(dt.Bits()-1)
}
