package optable

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// Bad is a call that fails. It returns the failed tensor, and the place of the call, which the
// error must name.
type Bad struct {
	Op    string // the name in the error
	Cause error  // nil: none of the exported ones
	Call  func(o *Given) (*T, string)
}

// Pass is a call with x as an operand, which may carry an error, be nil or released. The error
// comes before all others that the call has.
type Pass struct {
	Op    string // the name in the error about a released operand; "" for any
	NilOK bool   // x may be nil
	Call  func(o *Given, x *T) *T
}

// Several is a call that fails with several results.
type Several struct {
	Name string
	Call func(x *T) []*T // x is a float32 tensor of shape 2, 3, 4
}

// Late is a call whose operand, which late makes, has the cause ErrIndex once it runs.
type Late struct {
	Name string
	Call func(late func() *T) []*T // late's tensors have one dimension
}

// Given are the operands of bad calls, on the default device. Dtypes are float32 and elements
// are 1 unless a comment says otherwise.
type Given struct {
	f             *T // 2×3: 1 to 6
	g, v, zero    *T // 4: 1 to 4; 3; no dimension
	none, hollow  *T // 0×3; 2×0
	deep          *T // eight dimensions of 1
	thin, tall    *T // 2^40 bytes, and 2^40×1, each one byte repeated: uint8
	d, d3         *T // 3×2, 3: float64
	i, i3, at     *T // 2×3, 3: 1 to 3, 2: zeros; all int32
	u3            *T // 3: uint8
	b, b3, square *T // 2×3, 3: true, false, true, 3×3; all bool
	mask          *T // 2×3, bool
	two, at2      *T // 2×2; 2×2 zeros, int32
	pair, holes   *T // 2; 1 and NaN

	image, kernels *T // 1×4×5×5, 6×4×3×3
	volume, cubes  *T // 1×4×5×5×5, 6×4×3×3×3
}

// NewGiven makes the operands.
func NewGiven() *Given {
	f32, i32 := millrace.Float32, millrace.Int32
	f := millrace.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	return &Given{
		f: f, g: millrace.FromSlice([]float32{1, 2, 3, 4}, 4), v: millrace.Ones(f32, 3), zero: millrace.Ones(f32),
		none: millrace.Zeros(f32, 0, 3), hollow: millrace.Zeros(f32, 2, 0), deep: millrace.Zeros(f32, 1, 1, 1, 1, 1, 1, 1, 1),
		thin: millrace.Zeros(millrace.Uint8, 1).Expand(pow2(40)), tall: millrace.Zeros(millrace.Uint8, 1, 1).Expand(pow2(40), 1),
		d: millrace.Ones(millrace.Float64, 3, 2), d3: millrace.FromSlice([]float64{1, 2, 3}, 3),
		i: millrace.Ones(i32, 2, 3), i3: millrace.FromSlice([]int32{1, 2, 3}, 3), at: millrace.Zeros(i32, 2),
		u3: millrace.FromSlice([]uint8{1, 2, 3}, 3),
		b:  millrace.Ones(millrace.Bool, 2, 3), b3: millrace.FromSlice([]bool{true, false, true}, 3), square: millrace.Ones(millrace.Bool, 3, 3),
		mask: f.GtScalar(0), two: millrace.Ones(f32, 2, 2), at2: millrace.Zeros(i32, 2, 2),
		pair: millrace.Ones(f32, 2), holes: millrace.FromSlice([]float32{1, float32(math.NaN())}),
		image: millrace.Zeros(f32, 1, 4, 5, 5), kernels: millrace.Zeros(f32, 6, 4, 3, 3),
		volume: millrace.Zeros(f32, 1, 4, 5, 5, 5), cubes: millrace.Zeros(f32, 6, 4, 3, 3, 3),
	}
}

const (
	f32 = millrace.Float32
	i32 = millrace.Int32
)

var shape, dtype = millrace.ErrShape, millrace.ErrDType

// here is the place that it is called from, as errors end their path.
func here() string {
	_, file, n, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), n)
}

// pow2 is 2^bits, or the largest int where an int has 32 bits and cannot hold it.
func pow2(bits int) int {
	if bits >= strconv.IntSize-1 {
		return math.MaxInt
	}
	return 1 << bits
}

func first(x *T, _ ...*T) *T { return x }
func second(_, x *T) *T      { return x }
func third(_, _, x *T) *T    { return x }
func firstOf(xs []*T) *T     { return xs[0] }
func lastOf(xs []*T) *T      { return xs[len(xs)-1] }
func list(xs ...*T) []*T     { return xs }
func plain(f func(x *T) *T) func(o *Given, x *T) *T {
	return func(_ *Given, x *T) *T { return f(x) }
}

// BadCalls are the rows' Bad, and the calls of Unary with dtypes that ir's op does not take.
func BadCalls() []Bad {
	var all []Bad
	for _, o := range All() {
		all = append(all, o.Bad...)
		if o.Unary == nil || o.IR == ir.OpInvalid || o.IR == ir.Not { // Not is two methods
			continue
		}
		for _, dt := range slices.Concat(numbers, bools) {
			if !o.IR.Info().In.Has(dt) {
				all = append(all, Bad{o.IR.String(), dtype, func(g *Given) (*T, string) { x := g.b3.Cast(dt); return o.Unary(x), here() }})
			}
		}
	}
	return all
}

// PassCalls are the rows' Passes, and the calls of Unary and Binary.
func PassCalls() []Pass {
	var all []Pass
	for _, o := range All() {
		all = append(all, o.Passes...)
		if o.Unary != nil {
			all = append(all, Pass{Call: plain(o.Unary)})
		}
		if f := o.Binary.Tensors; f != nil {
			other := func(g *Given) *T {
				if o.IR.Info().In.Has(f32) {
					return g.f
				}
				return g.i
			}
			all = append(all, Pass{Call: func(g *Given, x *T) *T { return f(x, other(g)) }}, Pass{Call: func(g *Given, x *T) *T { return f(other(g), x) }})
		}
		for _, f := range []func(x *T, s float64) *T{o.Binary.Right, o.Binary.Left} {
			if f != nil {
				all = append(all, Pass{Call: func(_ *Given, x *T) *T { return f(x, 1) }})
			}
		}
	}
	return all
}
