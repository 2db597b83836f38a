package compliance

import (
	"encoding/binary"
	"fmt"
	"math/cmplx"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

var partOf = map[dtypes.DType]dtypes.DType{dtypes.Complex64: dtypes.Float32, dtypes.Complex128: dtypes.Float64}

// parts are the real and the imaginary parts of complex elements.
func parts(dt dtypes.DType, flat any) [2]any {
	var lists [2][]float64
	for _, z := range widened(flat) {
		lists[0], lists[1] = append(lists[0], real(z)), append(lists[1], imag(z))
	}
	return [2]any{fromFloats(partOf[dt], lists[0]), fromFloats(partOf[dt], lists[1])}
}

// sameByParts compares an op on complex operands, which come first, with the op
// on their real and on their imaginary parts: the same bits.
func sameByParts(t *testing.T, b compute.Backend, dt dtypes.DType, operands, others []arg, op fn) {
	t.Helper()
	got, shape, err := evaluate(b, append(slices.Clone(operands), others...), op)
	if err != nil {
		t.Fatal(err)
	}
	if shape.DType != dt {
		t.Fatalf("a %s", shape)
	}
	have := parts(dt, got)
	for i := range 2 {
		var args []arg
		for _, a := range operands {
			args = append(args, arg{parts(dt, a.flat)[i], a.dims})
		}
		want, wantShape, err := evaluate(b, append(args, others...), op)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(shape.Dimensions, wantShape.Dimensions) || fmt.Sprint(have[i]) != fmt.Sprint(want) {
			t.Errorf("part %d: %v of %v, want %v of %v", i, have[i], shape, want, wantShape)
		}
	}
}

// Every op that moves elements, and sums, do the same with both parts.
func TestComplexByParts(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 1))
	for _, dt := range complexes {
		elements := func(dims ...int) arg { return arg{narrowed(dt, gaussian(r, dt, product(dims))), dims} }
		x, y, scalar := elements(3, 4, 5), elements(3, 4, 5), elements()
		cond := arg{random(r, dtypes.Bool, 60), []int{3, 4, 5}}
		at := arg{[]int32{2, 0, 1}, []int{3, 1}}
		one, two := arg{[]int32{1}, nil}, arg{[]int32{2}, nil}
		dtypeOf := func(f compute.Function, v value) dtypes.DType { return must(f.Shape(v)).DType }
		for _, c := range []struct {
			name             string
			operands, others []arg
			op               fn
		}{
			{"reshape", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.Reshape(in[0], 6, 10) }},
			{"transpose", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.Transpose(in[0], 2, 0, 1) }},
			{"slice", []arg{x}, nil, func(f compute.Function, in []value) (value, error) {
				return f.Slice(in[0], []int{1, 0, 1}, []int{3, 4, 5}, []int{1, 3, 2})
			}},
			{"reverse", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.Reverse(in[0], 0, 2) }},
			{"broadcast", []arg{x}, nil, func(f compute.Function, in []value) (value, error) {
				return f.BroadcastInDim(in[0], shapes.Make(dtypeOf(f, in[0]), 3, 2, 4, 5), []int{0, 2, 3})
			}},
			{"broadcast of a scalar", []arg{scalar}, nil, func(f compute.Function, in []value) (value, error) {
				return f.BroadcastInDim(in[0], shapes.Make(dtypeOf(f, in[0]), 3, 0, 2), nil)
			}},
			{"concatenate", []arg{x, y}, nil, func(f compute.Function, in []value) (value, error) { return f.Concatenate(1, in[0], in[1], in[0]) }},
			{"pad", []arg{x, scalar}, nil, func(f compute.Function, in []value) (value, error) {
				return f.Pad(in[0], in[1], compute.PadAxis{Start: 1}, compute.PadAxis{Interior: 2, End: -1}, compute.PadAxis{Start: -1, End: 3})
			}},
			{"where", []arg{x, y}, []arg{cond}, func(f compute.Function, in []value) (value, error) { return f.Where(in[2], in[0], in[1]) }},
			{"where with a scalar", []arg{x, scalar}, []arg{cond}, func(f compute.Function, in []value) (value, error) { return f.Where(in[2], in[1], in[0]) }},
			{"gather", []arg{x}, []arg{at}, func(f compute.Function, in []value) (value, error) {
				return f.Gather(in[0], in[1], 1, []int{1, 2}, []int{0}, []int{0}, []int{1, 4, 5}, false)
			}},
			{"scatter", []arg{x, y}, []arg{at}, func(f compute.Function, in []value) (value, error) {
				return f.ScatterSum(in[0], in[2], in[1], 1, []int{1, 2}, []int{0}, []int{0}, false, false)
			}},
			{"dynamic slice", []arg{x}, []arg{one, two}, func(f compute.Function, in []value) (value, error) {
				return f.DynamicSlice(in[0], []value{in[1], in[2], in[1]}, []int{1, 3, 2})
			}},
			{"dynamic update", []arg{x, elements(1, 2, 3)}, []arg{one, two}, func(f compute.Function, in []value) (value, error) {
				return f.DynamicUpdateSlice(in[0], in[1], []value{in[2], in[3], in[2]})
			}},
			{"sum", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.ReduceSum(in[0], 0, 2) }},
			{"sum of all", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.ReduceSum(in[0]) }},
			{"window", []arg{x}, nil, func(f compute.Function, in []value) (value, error) {
				return f.ReduceWindow(in[0], compute.ReduceOpSum, []int{2, 1, 3}, []int{1, 1, 2}, nil, nil, [][2]int{{1, 0}, {0, 0}, {0, 2}})
			}},
			{"add", []arg{x, y}, nil, func(f compute.Function, in []value) (value, error) { return f.Add(in[0], in[1]) }},
			{"sub", []arg{x, scalar}, nil, func(f compute.Function, in []value) (value, error) { return f.Sub(in[0], in[1]) }},
			{"neg", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.Neg(in[0]) }},
			{"identity", []arg{x}, nil, func(f compute.Function, in []value) (value, error) { return f.Identity(in[0]) }},
			{"barriers", []arg{x, y}, nil, func(f compute.Function, in []value) (value, error) {
				both, err := f.OptimizationBarrier(in[1], in[0])
				if err != nil {
					return nil, err
				}
				return f.SchedulingBarrier(both[1], both[0])
			}},
		} {
			t.Run(fmt.Sprint(c.name, "/", dt), func(t *testing.T) { sameByParts(t, b, dt, c.operands, c.others, c.op) })
		}
	}
}

// Random shapes through the ops that move elements.
func TestComplexMoves(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 2))
	for round := range 25 {
		dims := make([]int, 1+r.IntN(4))
		for i := range dims {
			dims[i] = r.IntN(6)
		}
		dt := complexes[round%2]
		x := arg{random(r, dt, product(dims)), dims}
		seed := r.Uint64()
		for k, m := range moves(rand.New(rand.NewPCG(seed, 1)), dt, dims) {
			if strings.HasPrefix(m.name, "arg") || strings.HasPrefix(m.name, "dot") || m.name == "iota" {
				continue
			}
			t.Run(fmt.Sprint(round, "/", m.name, dims, dt), func(t *testing.T) {
				op := func(f compute.Function, in []value) (value, error) {
					// The same move with the dtype of what it is given.
					return moves(rand.New(rand.NewPCG(seed, 1)), must(f.Shape(in[0])).DType, dims)[k].op(f, in)
				}
				sameByParts(t, b, dt, append([]arg{x}, m.more...), nil, op)
			})
		}
	}
}

// Sums of products against loops.
func TestComplexProducts(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 3))
	for _, dt := range complexes {
		x, y := gaussian(r, dt, 3*4*5), gaussian(r, dt, 3*5*6)
		want := make([]complex128, 3*4*6)
		for i := range want {
			for k := range 5 {
				want[i] += x[i/24*20+i/6%4*5+k] * y[i/24*30+k*6+i%6]
			}
		}
		many := func(int) float64 { return 40 }
		for _, config := range []compute.DotGeneralConfig{{}, {AccumulatorDType: dtypes.Complex128}, {OutputDType: dt}} {
			check(t, b, dt, many, want, func(f compute.Function, in []value) (value, error) {
				return f.DotGeneral(must(f.Reshape(in[0], 3, 4, 5)), []int{2}, []int{0}, must(f.Reshape(in[1], 3, 5, 6)), []int{1}, []int{0}, config)
			}, x, y)
		}

		// A convolution along one axis: batch 2, 3 channels in, 4 out, 7 elements, a window of 3.
		image, kernel := gaussian(r, dt, 2*3*7), gaussian(r, dt, 4*3*3)
		want = make([]complex128, 2*4*5)
		for i := range want {
			n, o, at := i/20, i/5%4, i%5
			for c := range 3 {
				for k := range 3 {
					want[i] += image[n*21+c*7+at+k] * kernel[o*9+c*3+k]
				}
			}
		}
		axes := compute.ConvolveAxesConfig{InputBatch: 0, InputChannels: 1, InputSpatial: []int{2}, KernelOutputChannels: 0, KernelInputChannels: 1,
			KernelSpatial: []int{2}, OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2}}
		check(t, b, dt, many, want, func(f compute.Function, in []value) (value, error) {
			return f.ConvGeneral(must(f.Reshape(in[0], 2, 3, 7)), must(f.Reshape(in[1], 4, 3, 3)), axes, nil, nil, nil, nil, 1, 1)
		}, image, kernel)
	}
}

// Products along axes, of every number of elements.
func TestComplexReduceProduct(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 4))
	for n := range 12 {
		dt := complexes[n%2]
		dims := []int{2, n, 3}
		x := gaussian(r, dt, product(dims))
		for _, axes := range [][]int{{1}, {0, 1}, {2, 1}, {1, 2, 0}, {}} {
			along := axes
			if len(axes) == 0 {
				along = []int{0, 1, 2}
			}
			var kept []int
			for i := range 3 {
				if !slices.Contains(along, i) {
					kept = append(kept, i)
				}
			}
			size := 1
			for _, a := range kept {
				size *= dims[a]
			}
			want := slices.Repeat([]complex128{1}, size)
			for i, z := range x {
				at := []int{i / (3 * max(n, 1)), i / 3 % max(n, 1), i % 3}
				to := 0
				for _, a := range kept {
					to = to*dims[a] + at[a]
				}
				want[to] *= z
			}
			check(t, b, dt, func(int) float64 { return 200 }, want, func(f compute.Function, in []value) (value, error) {
				return f.ReduceProduct(must(f.Reshape(in[0], dims...)), axes...)
			}, x)
		}
	}
}

// Conversions to and from every dtype.
func TestComplexConvert(t *testing.T) {
	b := open(t, "millrace:cpu")
	for _, dt := range append(slices.Clone(all), complexes...) {
		for _, to := range append(slices.Clone(all), complexes...) {
			if !dt.IsComplex() && !to.IsComplex() {
				continue
			}
			t.Run(fmt.Sprint(dt, "/", to), func(t *testing.T) {
				list := []float64{0, 1, 2.5, 0, 100, 7}
				var flat any
				switch {
				case dt.IsComplex():
					flat = narrowed(dt, []complex128{0, 1 + 2i, 2.5 - 1i, 3i, 100, 7 - 7i})
				case dt == dtypes.Bool:
					flat = []bool{false, true, true, false, true, true}
				default:
					flat = fromFloats(dt, list)
				}
				got, shape, err := evaluate(b, []arg{{flat, []int{6}}}, func(f compute.Function, in []value) (value, error) { return f.ConvertDType(in[0], to) })
				if err != nil || shape.DType != to {
					t.Fatal(shape, err)
				}
				var want any
				switch {
				case dt.IsComplex() && to.IsComplex():
					want = narrowed(to, widened(flat))
				case to == dtypes.Bool:
					want = []bool{false, true, true, true, true, true}
				case dt.IsComplex():
					want = fromFloats(to, list)
				default:
					var wide []complex128
					for i := range 6 {
						x, _ := element(reflect.ValueOf(flat).Index(i))
						if dt == dtypes.Bool {
							x = real(truth(reflect.ValueOf(flat).Index(i).Bool()))
						}
						wide = append(wide, complex(x, 0))
					}
					want = narrowed(to, wide)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
}

// The ways to make a complex number and to take it apart.
func TestComplexParts(t *testing.T) {
	b := open(t, "millrace:cpu")
	for name, c := range map[string]struct {
		args []arg
		op   fn
		want any
	}{
		"vectors":         {[]arg{{[]float32{1, 2}, []int{2}}, {[]float32{3, 4}, []int{2}}}, call(compute.OpTypeComplex), []complex64{1 + 3i, 2 + 4i}},
		"scalar and real": {[]arg{{[]float64{1}, nil}, {[]float64{3, 4}, []int{2}}}, call(compute.OpTypeComplex), []complex128{1 + 3i, 1 + 4i}},
		"real and scalar": {[]arg{{[]float64{3, 4}, []int{2}}, {[]float64{1}, nil}}, call(compute.OpTypeComplex), []complex128{3 + 1i, 4 + 1i}},
		"real of float":   {[]arg{{[]float32{1, 2}, []int{2}}}, call(compute.OpTypeReal), []float32{1, 2}},
		"imag of float":   {[]arg{{[]float32{1, 2}, []int{2}}}, call(compute.OpTypeImag), []float32{0, 0}},
		"iota": {nil, func(f compute.Function, _ []value) (value, error) {
			return f.Iota(shapes.Make(dtypes.Complex64, 2, 3), 1)
		},
			[]complex64{0, 1, 2, 0, 1, 2}},
		"constant": {nil, func(f compute.Function, _ []value) (value, error) { return f.Constant([]complex64{1i, -2}, 2) }, []complex64{1i, -2}},
	} {
		got, _, err := evaluate(b, c.args, c.op)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v (%v)", name, got, c.want, err)
		}
	}
}

// The bits of complex numbers are those of the real and then of the imaginary
// part, as in Go's memory, whatever they are seen as.
func TestComplexBits(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(51, 5))
	bytes := func(flat any) []byte { return must(binary.Append(nil, binary.LittleEndian, flat)) }
	for _, dt := range complexes {
		for _, by := range []dtypes.DType{dtypes.Float32, dtypes.Uint8, dtypes.Int16, dtypes.Uint32, dtypes.Int64, dtypes.Float64, dtypes.Complex64, dtypes.Complex128} {
			x := narrowed(dt, gaussian(r, dt, 2*4))
			want := bytes(x)
			there := func(f compute.Function, in []value) (value, error) {
				y := must(f.Reshape(in[0], 2, 2, 2))
				if dt.Bits() == by.Bits() {
					y = must(f.Reshape(in[0], 2, 4))
				}
				return f.Bitcast(y, by)
			}
			got, shape, err := evaluate(b, []arg{{x, []int{2, 4}}}, there)
			if err != nil || !slices.Equal(bytes(got), want) {
				t.Errorf("%s as %s: %v of %s, want %v (%v)", dt, by, got, shape, x, err)
			}
			got, _, err = evaluate(b, []arg{{x, []int{2, 4}}}, func(f compute.Function, in []value) (value, error) {
				return f.Bitcast(must(there(f, in)), dt)
			})
			if err != nil || !slices.Equal(bytes(got), want) {
				t.Errorf("%s as %s and back: %v, want %v (%v)", dt, by, got, x, err)
			}
		}
	}
}

// What has no meaning for complex numbers, or mixes dtypes, is an error that
// names op and shapes.
func TestComplexBadInput(t *testing.T) {
	b := open(t, "millrace:cpu")
	f := b.Builder("bad").Main()
	param := func(dt dtypes.DType, dims ...int) value { return must(f.Parameter("x", shapes.Make(dt, dims...), nil)) }
	z, w, x, at := param(dtypes.Complex64, 2, 3), param(dtypes.Complex128, 2, 3), param(dtypes.Float32, 2, 3), param(dtypes.Int32, 2, 1)
	const c64 = "(Complex64)[2, 3]"
	no := func(op compute.OpType, want string, in []value, extra ...any) {
		t.Helper()
		v, err := call(op, extra...)(f, in)
		if err == nil || v != nil || !strings.Contains(err.Error(), op.String()) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", op, err)
		}
	}
	for _, op := range []compute.OpType{
		compute.OpTypeCeil, compute.OpTypeFloor, compute.OpTypeRound, compute.OpTypeErf, compute.OpTypeLogicalNot, compute.OpTypeBitCount,
		compute.OpTypeClz, compute.OpTypeBitwiseNot, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceBitwiseXor,
	} {
		no(op, c64, []value{z})
	}
	for _, op := range []compute.OpType{
		compute.OpTypeMax, compute.OpTypeMin, compute.OpTypeRem, compute.OpTypeAtan2, compute.OpTypeLessThan, compute.OpTypeGreaterOrEqual,
		compute.OpTypeEqualTotalOrder, compute.OpTypeLessThanTotalOrder, compute.OpTypeBitwiseAnd, compute.OpTypeShiftLeft, compute.OpTypeLogicalAnd, compute.OpTypeComplex,
	} {
		no(op, c64, []value{z, z})
	}
	for _, op := range []compute.OpType{compute.OpTypeAdd, compute.OpTypeMul, compute.OpTypeDiv, compute.OpTypePow, compute.OpTypeEqual} {
		no(op, c64, []value{z, w})
		no(op, c64, []value{x, z})
		no(op, c64, []value{z, at})
	}
	no(compute.OpTypeMul, "(Complex64)[3, 2]", []value{z, param(dtypes.Complex64, 3, 2)})
	no(compute.OpTypeClamp, c64, []value{z, z, z})
	no(compute.OpTypeWhere, c64, []value{param(dtypes.Bool), z, x})
	no(compute.OpTypeWhere, c64, []value{param(dtypes.Bool), z, w})
	no(compute.OpTypePad, c64, []value{z, param(dtypes.Float32)})
	no(compute.OpTypeConcatenate, c64, nil, 0, z, x)
	no(compute.OpTypeBroadcastInDim, c64, []value{z}, shapes.Make(dtypes.Float32, 2, 3), []int{0, 1})
	no(compute.OpTypeBroadcastInDim, "Complex64", []value{x}, shapes.Make(dtypes.Complex64, 2, 3), []int{0, 1})
	no(compute.OpTypeArgMinMax, c64, []value{z}, 0, dtypes.Int32, true)
	no(compute.OpTypeArgMinMax, "Complex64", []value{x}, 0, dtypes.Complex64, true)
	no(compute.OpTypeComplex, "(Int32)[2, 1]", []value{at, at})
	no(compute.OpTypeComplex, "(Float32)[2, 3]", []value{x, param(dtypes.Float64, 2, 3)})
	no(compute.OpTypeComplex, "(Float32)[2, 3]", []value{x, param(dtypes.Float32, 3, 2)})
	no(compute.OpTypeReal, "(Int32)[2, 1]", []value{at})
	no(compute.OpTypeImag, "(Int32)[2, 1]", []value{at})
	no(compute.OpTypeConj, "(Float32)[2, 3]", []value{x})
	no(compute.OpTypeReduceWindow, c64, []value{z}, compute.ReduceOpMax, []int{2, 1}, []int(nil), []int(nil), []int(nil), [][2]int(nil))
	no(compute.OpTypeReduceProduct, c64, []value{z}, 2)
	no(compute.OpTypeScatterMax, c64, []value{z, at, z}, 1, []int{1}, []int{0}, []int{0}, false, false)
	no(compute.OpTypeGather, c64, []value{z, z}, 1, []int{1}, []int{0}, []int{0}, []int{1, 3}, false)
	no(compute.OpTypeBatchNormForInference, c64, []value{z, z, z, z, z}, float32(0.1), 1)
	no(compute.OpTypeFusedSoftmax, c64, []value{z}, 1)
	for _, config := range []compute.DotGeneralConfig{{OutputDType: dtypes.Float32}, {AccumulatorDType: dtypes.Float64}} {
		if _, err := f.DotGeneral(z, []int{1}, nil, z, []int{1}, nil, config); err == nil || !strings.Contains(err.Error(), "DotGeneral("+c64) {
			t.Errorf("DotGeneral, %+v: %v", config, err)
		}
	}
	if _, err := f.DotGeneral(x, []int{1}, nil, x, []int{1}, nil, compute.DotGeneralConfig{OutputDType: dtypes.Complex64}); err == nil || !strings.Contains(err.Error(), "DotGeneral") {
		t.Errorf("a real DotGeneral to complex numbers: %v", err)
	}
	if _, err := f.Bitcast(param(dtypes.Complex64, 3), dtypes.Complex128); err == nil || !strings.Contains(err.Error(), "Bitcast((Complex64)[3])") {
		t.Errorf("Bitcast: %v", err)
	}
	state := must(f.Parameter("state", compute.RNGStateShape, nil))
	if _, _, err := f.RNGBitGenerator(state, shapes.Make(dtypes.Complex64, 2)); err == nil || !strings.Contains(err.Error(), "RNGBitGenerator") {
		t.Errorf("RNGBitGenerator: %v", err)
	}
}

// Complex values through functions, closures and loops, and sorted by what their
// parts are.
func TestComplexControlFlow(t *testing.T) {
	b := open(t, "millrace:cpu")
	bd := b.Builder("control")
	f := bd.Main()
	vector := shapes.Make(dtypes.Complex64, 3)
	z := must(f.Parameter("z", vector, nil))
	flag := must(f.Parameter("flag", shapes.Make(dtypes.Bool), nil))

	named := must(bd.NewFunction("swap"))
	p, q := must(named.Parameter("p", vector, nil)), must(named.Parameter("n", shapes.Make(dtypes.Int32), nil))
	if err := named.Return(values{q, must(named.Conj(p)), p}, nil); err != nil {
		t.Fatal(err)
	}
	called := must(f.Call(named, z, int32s(f, 5)))

	turned := must(f.Mul(z, must(f.Constant([]complex64{1i}))))
	branch := must(f.If(flag,
		closure(f, func(c compute.Function) values { return values{turned, must(c.Abs(z)), z} }),
		closure(f, func(c compute.Function) values { return values{z, must(c.Real(turned)), must(c.Neg(z))} })))

	cond := must(f.Closure())
	n := must(cond.Parameter("n", shapes.Make(dtypes.Int32), nil))
	must(cond.Parameter("z", vector, nil))
	if err := cond.Return(values{must(cond.LessThan(n, int32s(cond, 3)))}, nil); err != nil {
		t.Fatal(err)
	}
	body := must(f.Closure())
	n = must(body.Parameter("n", shapes.Make(dtypes.Int32), nil))
	w := must(body.Parameter("z", vector, nil))
	if err := body.Return(values{must(body.Add(n, int32s(body, 1))), must(body.Mul(w, z))}, nil); err != nil {
		t.Fatal(err)
	}
	loop := must(f.While(cond, body, int32s(f, 0), z))

	by := func(key func(compute.Function, value) (value, error)) values {
		g := must(f.Closure())
		var in values
		for _, dt := range []dtypes.DType{dtypes.Int32, dtypes.Int32, dtypes.Complex64, dtypes.Complex64} {
			in = append(in, must(g.Parameter("x", shapes.Make(dt), nil)))
		}
		if err := g.Return(values{must(g.LessThan(must(key(g, in[2])), must(key(g, in[3]))))}, nil); err != nil {
			t.Fatal(err)
		}
		return must(f.Sort(g, 0, true, must(f.Iota(shapes.Make(dtypes.Int32, 3), 0)), z))
	}
	byReal, byImag, byAbs := by(compute.Function.Real), by(compute.Function.Imag), by(compute.Function.Abs)

	results := slices.Concat(called, branch, loop, byReal, byImag, byAbs)
	if err := f.Return(results, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	x := []complex64{3 + 1i, -2 + 5i, 1 - 2i}
	each := func(f func(z complex64) complex64) []complex64 {
		var list []complex64
		for _, z := range x {
			list = append(list, f(z))
		}
		return list
	}
	fourth := each(func(z complex64) complex64 { return z * z * z * z })
	abs := []float32{float32(cmplx.Abs(3 + 1i)), float32(cmplx.Abs(-2 + 5i)), float32(cmplx.Abs(1 - 2i))}
	for range 2 {
		for _, taken := range []bool{true, false} {
			want := []any{[]int32{5}, []complex64{3 - 1i, -2 - 5i, 1 + 2i}, x}
			if taken {
				want = append(want, each(func(z complex64) complex64 { return z * 1i }), abs, x)
			} else {
				want = append(want, x, []float32{-1, -5, 2}, each(func(z complex64) complex64 { return -z }))
			}
			want = append(want, []int32{3}, fourth, []int32{1, 2, 0}, []complex64{x[1], x[2], x[0]}, []int32{2, 0, 1}, []complex64{x[2], x[0], x[1]},
				[]int32{2, 0, 1}, []complex64{x[2], x[0], x[1]})
			out, err := e.Execute([]compute.Buffer{must(b.BufferFromFlatData(0, x, vector)), must(b.BufferFromFlatData(0, []bool{taken}, shapes.Make(dtypes.Bool)))}, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i, buf := range out {
				s := must(buf.Shape())
				flat := dtypes.MakeAnySlice(s.DType, s.Size())
				if err := buf.ToFlatData(flat); err != nil || !reflect.DeepEqual(flat, want[i]) {
					t.Errorf("taken %v, result %d: %v, want %v (%v)", taken, i, flat, want[i], err)
				}
			}
		}
	}
}

// The same on a GPU, which has no complex128, as near as its functions are.
func TestComplexOnGPU(t *testing.T) {
	const config = "millrace:webgpu"
	b := openIfThere(t, config)
	if has := b.Capabilities().DTypes; !has[dtypes.Complex64] || has[dtypes.Complex128] {
		t.Errorf("complex64 %v, complex128 %v", has[dtypes.Complex64], has[dtypes.Complex128])
	}
	if _, err := b.Builder("wide").Main().Parameter("x", shapes.Make(dtypes.Complex128, 2), nil); !compute.IsNotImplemented(err) {
		t.Errorf("complex128: %v", err)
	}
	r := rand.New(rand.NewPCG(51, 6))
	const dt = dtypes.Complex64
	x, y := gaussian(r, dt, 500), gaussian(r, dt, 500)
	var quotients []complex128
	for i := range x {
		quotients = append(quotients, x[i]/y[i])
	}
	rough := func(int) float64 { return 100 }
	check(t, b, dt, rough, quotients, call(compute.OpTypeDiv), x, y)
	for _, op := range []compute.OpType{compute.OpTypeAbs, compute.OpTypeExp, compute.OpTypeLog, compute.OpTypeSqrt, compute.OpTypeTanh} {
		var want []complex128
		for _, z := range x {
			want = append(want, definitions[op].f(z))
		}
		check(t, b, dt, rough, want, call(op), x)
	}
	for _, n := range []int{12, 100, 131} {
		check(t, b, dt, func(int) float64 { return 1e5 }, dft(x[:n], []int{n}, 0, false), func(f compute.Function, in []value) (value, error) {
			return f.FFT(in[0], compute.FFTForward, []int{n})
		}, x[:n])
	}
}
