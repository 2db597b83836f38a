package compliance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
)

// call calls the method of compute.Function that an op is named after.
func call(op compute.OpType, extra ...any) func(compute.Function, []compute.Value) (compute.Value, error) {
	return func(f compute.Function, in []compute.Value) (compute.Value, error) {
		m := reflect.ValueOf(f).MethodByName(op.String())
		var args []reflect.Value
		for _, v := range in {
			args = append(args, reflect.ValueOf(&v).Elem())
		}
		for _, x := range extra {
			args = append(args, reflect.ValueOf(x))
		}
		out := m.Call(args)
		err, _ := out[1].Interface().(error)
		return out[0].Interface(), err
	}
}

// Unary ops on edge values of every dtype. The Go backend's Sign knows neither
// NaN nor -0.
func TestUnaryAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	ops := []compute.OpType{
		compute.OpTypeAbs, compute.OpTypeBitCount, compute.OpTypeBitwiseNot, compute.OpTypeCeil, compute.OpTypeClz, compute.OpTypeCos,
		compute.OpTypeErf, compute.OpTypeExp, compute.OpTypeExpm1, compute.OpTypeFloor, compute.OpTypeIsFinite, compute.OpTypeIsNaN,
		compute.OpTypeLog, compute.OpTypeLog1p, compute.OpTypeLogicalNot, compute.OpTypeLogistic, compute.OpTypeNeg, compute.OpTypeRound,
		compute.OpTypeRsqrt, compute.OpTypeSign, compute.OpTypeSin, compute.OpTypeSqrt, compute.OpTypeTanh,
	}
	for _, op := range ops {
		compared := 0
		for _, dt := range all {
			x := edges(dt)
			n := reflect.ValueOf(x).Len()
			t.Run(fmt.Sprint(op, "/", dt), func(t *testing.T) {
				nan := func(at []int) bool { return op == compute.OpTypeSign && dt.IsFloat() && at[0] == n-1 }
				if agree(t, b, ref, []arg{{x, []int{n}}}, nan, call(op)) {
					compared++
				}
			})
		}
		if compared == 0 {
			t.Errorf("%s: compared with nothing", op)
		}
	}
}

// Binary ops on all pairs of edge values, which broadcast against each other.
// Left out is what the Go backend gives no number for, or another than its
// documentation says: integers divided by 0, and negative powers of integers.
func TestBinaryAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	ops := []compute.OpType{
		compute.OpTypeAdd, compute.OpTypeSub, compute.OpTypeMul, compute.OpTypeDiv, compute.OpTypeRem, compute.OpTypePow, compute.OpTypeMax,
		compute.OpTypeMin, compute.OpTypeBitwiseAnd, compute.OpTypeBitwiseOr, compute.OpTypeBitwiseXor, compute.OpTypeLogicalAnd,
		compute.OpTypeLogicalOr, compute.OpTypeLogicalXor, compute.OpTypeShiftLeft, compute.OpTypeShiftRightArithmetic,
		compute.OpTypeShiftRightLogical, compute.OpTypeEqual, compute.OpTypeNotEqual, compute.OpTypeLessThan, compute.OpTypeLessOrEqual,
		compute.OpTypeGreaterThan, compute.OpTypeGreaterOrEqual,
	}
	for _, op := range ops {
		compared := 0
		for _, dt := range all {
			x := edges(dt)
			y := x
			if dt.IsInt() && (op == compute.OpTypeDiv || op == compute.OpTypeRem) {
				y = reflect.ValueOf(x).Slice(1, reflect.ValueOf(x).Len()).Interface()
			}
			if dt.IsInt() && op == compute.OpTypePow {
				y = reflect.ValueOf(x).Slice(0, 7).Interface()
			}
			n, m := reflect.ValueOf(x).Len(), reflect.ValueOf(y).Len()
			t.Run(fmt.Sprint(op, "/", dt), func(t *testing.T) {
				if agree(t, b, ref, []arg{{x, []int{n, 1}}, {y, []int{1, m}}}, nil, call(op)) {
					compared++
				}
				// With a number on either side.
				for i := range min(3, m) {
					one := reflect.ValueOf(y).Slice(i, i+1).Interface()
					agree(t, b, ref, []arg{{x, []int{n}}}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						c, err := f.Constant(one)
						if err != nil {
							return nil, err
						}
						return call(op)(f, []compute.Value{in[0], c})
					})
					agree(t, b, ref, []arg{{y, []int{m}}}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
						c, err := f.Constant(one)
						if err != nil {
							return nil, err
						}
						return call(op)(f, []compute.Value{c, in[0]})
					})
				}
			})
		}
		if compared == 0 {
			t.Errorf("%s: compared with nothing", op)
		}
	}
}

// Conversions between every two dtypes, of values that Go's conversion defines.
func TestConvertAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	for _, from := range all {
		for _, to := range all {
			x := edges(from)
			if from.IsFloat() && to.IsInt() {
				x = fromFloats(from, []float64{0, 0.5, 1, 1.9, 2.5, 100, 127})
			}
			n := reflect.ValueOf(x).Len()
			t.Run(fmt.Sprint(from, "/", to), func(t *testing.T) {
				ok := agree(t, b, ref, []arg{{x, []int{n}}}, nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
					return f.ConvertDType(in[0], to)
				})
				if !ok {
					t.Error("the Go backend does not convert")
				}
			})
		}
	}
}

// Reductions along every set of axes of random values.
func TestReduceAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	ops := []compute.OpType{
		compute.OpTypeReduceSum, compute.OpTypeReduceProduct, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceLogicalAnd,
		compute.OpTypeReduceLogicalOr, compute.OpTypeReduceLogicalXor, compute.OpTypeReduceBitwiseAnd, compute.OpTypeReduceBitwiseOr,
		compute.OpTypeReduceBitwiseXor,
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, op := range ops {
		compared := 0
		for _, dt := range all {
			dims := []int{3, 5, 4}
			x := random(r, dt, 3*5*4)
			t.Run(fmt.Sprint(op, "/", dt), func(t *testing.T) {
				for _, axes := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {2, 1}, {0, 1, 2}} {
					var extra []any
					for _, a := range axes {
						extra = append(extra, a)
					}
					if agree(t, b, ref, []arg{{x, dims}}, nil, call(op, extra...)) {
						compared++
					}
				}
			})
		}
		if compared == 0 {
			t.Errorf("%s: compared with nothing", op)
		}
	}
}

// Many elements, which are folded in many rounds: fused into one, each would
// compute all that came before it again, and planning that would not end.
func TestLongBitwiseReduce(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	const n = 1<<17 + 3
	x := random(rand.New(rand.NewPCG(13, 14)), dtypes.Int32, n)
	if !agree(t, b, ref, []arg{{x, []int{n}}}, nil, call(compute.OpTypeReduceBitwiseXor, 0)) {
		t.Error("the Go backend does not do it")
	}
}

// random are elements with all kinds of bits; floats are near 1, so that
// products stay in range.
func random(r *rand.Rand, dt dtypes.DType, n int) any {
	flat := dtypes.MakeAnySlice(dt, n)
	if dt.IsComplex() {
		return narrowed(dt, gaussian(r, dt, n))
	}
	if dt.IsFloat() {
		list := make([]float64, n)
		for i := range list {
			list[i] = 1 + float64(r.Float64()-0.5)/4
		}
		return fromFloats(dt, list)
	}
	for i := range n {
		v := reflect.ValueOf(r.IntN(3) > 0)
		if dt != dtypes.Bool {
			v = reflect.ValueOf(r.Uint64()).Convert(dt.GoType())
		}
		reflect.ValueOf(flat).Index(i).Set(v)
	}
	return flat
}

// Random shapes through the ops that move elements, and DotGeneral.
func TestMovesAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 60 {
		rank := 1 + r.IntN(4)
		dims := make([]int, rank)
		size := 1
		for i := range dims {
			dims[i] = r.IntN(5)
			if r.IntN(4) > 0 {
				dims[i]++
			}
			size *= dims[i]
		}
		dt := all[r.IntN(len(all))]
		x := arg{random(r, dt, size), dims}
		for _, m := range moves(r, dt, dims) {
			t.Run(fmt.Sprint(round, "/", m.name, dims, dt), func(t *testing.T) {
				if !agree(t, b, ref, append([]arg{x}, m.more...), nil, m.op) && m.always {
					t.Error("the Go backend does not do it")
				}
			})
		}
	}
}

// Pad with negative amounts, which the Go backend puts elements into the wrong
// places for, against where elements go by definition.
func TestPadNegative(t *testing.T) {
	b := open(t, "millrace:cpu")
	const fill = -1
	for _, size := range []int{0, 1, 2, 5} {
		for _, p := range []compute.PadAxis{{Start: -1}, {End: -1}, {Start: -2, End: 3}, {Start: 3, End: -2, Interior: 1}, {Start: -1, End: -1, Interior: 2}, {Start: -4, End: 5}} {
			n := size + p.Start + p.End + max(size-1, 0)*p.Interior
			if n < 0 {
				continue
			}
			x, want := make([]int32, 2*size), slices.Repeat([]int32{fill}, 2*n)
			for i := range x {
				x[i] = int32(i)
				if to := p.Start + i%max(size, 1)*(p.Interior+1); to >= 0 && to < n {
					want[i/size*n+to] = x[i]
				}
			}
			for _, constant := range []bool{false, true} {
				got, _, err := evaluate(b, []arg{{x, []int{2, size}}, {[]int32{fill}, nil}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
					if constant {
						c, err := f.Constant([]int32{fill})
						if err != nil {
							return nil, err
						}
						return f.Pad(in[0], c, compute.PadAxis{}, p)
					}
					return f.Pad(in[0], in[1], compute.PadAxis{}, p)
				})
				if err != nil || !slices.Equal(got.([]int32), want) {
					t.Errorf("%d elements, %+v, constant %v: %v, want %v (%v)", size, p, constant, got, want, err)
				}
			}
		}
	}
}

type move struct {
	name   string
	more   []arg
	op     func(compute.Function, []compute.Value) (compute.Value, error)
	always bool // the Go backend has it for all shapes
}

func moves(r *rand.Rand, dt dtypes.DType, dims []int) []move {
	rank := len(dims)
	type fn = func(compute.Function, []compute.Value) (compute.Value, error)
	perm := r.Perm(rank)
	start, limit, stride := make([]int, rank), make([]int, rank), make([]int, rank)
	pads := make([]compute.PadAxis, rank)
	column, wide, axes := []int{}, []int{}, []int{}
	for i, d := range dims {
		start[i] = r.IntN(d + 1)
		limit[i], stride[i] = start[i]+r.IntN(d-start[i]+1), 1+r.IntN(3)
		pads[i] = compute.PadAxis{Start: r.IntN(3), End: r.IntN(3), Interior: r.IntN(2)}
		if r.IntN(3) == 0 {
			wide = append(wide, 2)
		}
		axes, wide = append(axes, len(wide)), append(wide, d)
	}
	for _, d := range dims {
		column = append(column, d)
	}
	slices.Reverse(column)
	list := []move{
		{"transpose", nil, fn(func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Transpose(in[0], perm...)
		}), true},
		{"reshape", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Reshape(in[0], column...)
		}, true},
		{"slice", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Slice(in[0], start, limit, stride)
		}, true},
		{"reverse", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Reverse(in[0], perm[:1]...)
		}, true},
		{"broadcast", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.BroadcastInDim(in[0], shapes.Make(dt, wide...), axes)
		}, true},
		{"concatenate", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Concatenate(perm[0], in[0], in[0], in[0])
		}, true},
		{"pad", []arg{{random(r, dt, 1), nil}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Pad(in[0], in[1], pads...)
		}, false},
		{"iota", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.Iota(shapes.Make(dt, dims...), perm[0])
		}, false},
		{"argmax", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.ArgMinMax(in[0], perm[0], dtypes.Int16, false)
		}, false},
		{"argmin", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.ArgMinMax(in[0], perm[0], dtypes.Uint64, true)
		}, false},
	}
	k := perm[0]
	other := []int{3, dims[k]}
	size := 3 * dims[k]
	list = append(list, move{"dot", []arg{{random(r, dt, size), other}}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.DotGeneral(in[0], []int{k}, nil, in[1], []int{1}, nil, compute.DotGeneralConfig{})
	}, false})
	return append(list, move{"dot itself", nil, func(f compute.Function, in []compute.Value) (compute.Value, error) {
		return f.DotGeneral(in[0], []int{k}, perm[1:], in[0], []int{k}, perm[1:], compute.DotGeneralConfig{})
	}, false})
}
