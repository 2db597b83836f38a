package compliance

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
)

// reference is the module's own backend. With ops one after another it panics,
// where it does, on the goroutine that called it. With one goroutine for each op it does not lose
// sums in SelectAndScatter: see docs/upstream.md.
const reference = "go:ops_sequential,parallelism=0"

// arg is an input of a graph.
type arg struct {
	flat any
	dims []int
}

// evaluate builds a graph of one op, runs it and returns its elements and
// shape. A panic of the backend is an error.
func evaluate(b compute.Backend, args []arg, op func(f compute.Function, in []compute.Value) (compute.Value, error)) (flat any, shape shapes.Shape, err error) {
	if marking && b.Name() == "millrace" {
		if flat, shape, err = evaluateAs(b, args, marked, op); err == nil {
			marks++
			return flat, shape, nil
		} else if strings.HasPrefix(err.Error(), "panic") || strings.Contains(err.Error(), "Execute") {
			return nil, shape, fmt.Errorf("with dynamic axes: %w", err)
		}
	}
	return evaluateAs(b, args, shapes.Make, op)
}

// marking has evaluate build graphs with dynamic axes where an op takes them, and
// marks counts those.
var (
	marking bool
	marks   int
)

// marked is a shape whose axes of more than one element are dynamic: those of one
// size are one axis.
func marked(dt dtypes.DType, dims ...int) shapes.Shape {
	s := shapes.Make(dt, dims...)
	s.AxisNames = make([]string, len(dims))
	for i, d := range dims {
		if d != 1 {
			s.Dimensions[i], s.AxisNames[i] = shapes.DynamicDim, fmt.Sprint("of", d)
		}
	}
	return s
}

func evaluateAs(b compute.Backend, args []arg, shapeOf func(dtypes.DType, ...int) shapes.Shape,
	op func(f compute.Function, in []compute.Value) (compute.Value, error)) (flat any, shape shapes.Shape, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	bd := b.Builder("op")
	f := bd.Main()
	var params []compute.Value
	var bufs []compute.Buffer
	for i, a := range args {
		s := shapes.Make(dtypes.FromGoType(reflect.TypeOf(a.flat).Elem()), a.dims...)
		buf, err := b.BufferFromFlatData(0, a.flat, s)
		if err != nil {
			return nil, shape, err
		}
		p, err := f.Parameter(fmt.Sprint("x", i), shapeOf(s.DType, a.dims...), nil)
		if err != nil {
			return nil, shape, err
		}
		params, bufs = append(params, p), append(bufs, buf)
	}
	y, err := op(f, params)
	if err != nil {
		return nil, shape, err
	}
	if err := f.Return([]compute.Value{y}, nil); err != nil {
		return nil, shape, err
	}
	e, err := bd.Compile()
	if err != nil {
		return nil, shape, err
	}
	out, err := e.Execute(bufs, nil, 0)
	if err != nil {
		return nil, shape, err
	}
	if shape, err = out[0].Shape(); err != nil {
		return nil, shape, err
	}
	flat = dtypes.MakeAnySlice(shape.DType, shape.Size())
	return flat, shape, out[0].ToFlatData(flat)
}

// edges are elements of a dtype that ops are likely to get wrong.
func edges(dt dtypes.DType) any {
	switch {
	case dt == dtypes.Bool:
		return []bool{false, true}
	case dt.IsInt():
		return edgeInts(dt)
	}
	list := []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3, 7.25, -7.25, 100, 1e-3, 65504, -65504,
		math.Inf(1), math.Inf(-1), math.NaN()}
	return fromFloats(dt, list)
}

func fromFloats(dt dtypes.DType, list []float64) any {
	flat := dtypes.MakeAnySlice(dt, len(list))
	for i, x := range list {
		var v any
		switch dt {
		case dtypes.Float16:
			v = float16.FromFloat32(float32(x))
		case dtypes.BFloat16:
			v = bfloat16.FromFloat32(float32(x))
		default:
			v = reflect.ValueOf(x).Convert(dt.GoType()).Interface()
		}
		reflect.ValueOf(flat).Index(i).Set(reflect.ValueOf(v))
	}
	return flat
}

// edgeInts are small numbers and those around the limits of each width.
func edgeInts(dt dtypes.DType) any {
	bits := dt.Bits()
	list := []int64{0, 1, 2, 3, 5, 7, 8, 31, 100, -1, -2, -3, -7, -100}
	for _, w := range []int{7, 8, 15, 16, 31, 32, 63} {
		if w < bits {
			list = append(list, 1<<w-1, 1<<w, -1<<w, -1<<w+1)
		}
	}
	flat := dtypes.MakeAnySlice(dt, len(list))
	for i, x := range list {
		reflect.ValueOf(flat).Index(i).Set(reflect.ValueOf(x).Convert(dt.GoType()))
	}
	return flat
}

var all = []dtypes.DType{
	dtypes.Bool, dtypes.Int8, dtypes.Int16, dtypes.Int32, dtypes.Int64, dtypes.Uint8, dtypes.Uint16, dtypes.Uint32, dtypes.Uint64,
	dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64,
}

// element is a number of any dtype as a float64, and as its own kind of number.
func element(v reflect.Value) (float64, any) {
	switch x := v.Interface().(type) {
	case float16.Float16:
		return float64(x.Float32()), x
	case bfloat16.BFloat16:
		return float64(x.Float32()), x
	case bool:
		return 0, x
	}
	return v.Convert(reflect.TypeFor[float64]()).Float(), v.Interface()
}

// tolerance is how far two backends may be apart, relative to the larger.
var tolerance = map[dtypes.DType]float64{dtypes.Float16: 4e-3, dtypes.BFloat16: 3e-2, dtypes.Float32: 3e-6, dtypes.Float64: 1e-13}

func near(dt dtypes.DType, got, want reflect.Value) bool {
	g, exactG := element(got)
	w, exactW := element(want)
	if !dt.IsFloat() {
		return exactG == exactW
	}
	if g == w || g != g && w != w {
		return true
	}
	if dt == dtypes.Float16 && max(math.Abs(g), math.Abs(w)) < 0x1p-14 {
		return true // the Go backend has no subnormal numbers of float16
	}
	return math.Abs(g-w) <= tolerance[dt]*max(math.Abs(g), math.Abs(w))
}

// agree compares an op with the Go backend's on the same arguments. What that
// one does not do is counted and not compared.
func agree(t *testing.T, b, reference compute.Backend, args []arg, except func(at []int) bool, op func(f compute.Function, in []compute.Value) (compute.Value, error)) (compared bool) {
	t.Helper()
	want, wantShape, err := evaluate(reference, args, op)
	if err != nil {
		return false
	}
	got, shape, err := evaluate(b, args, op)
	if err != nil {
		t.Errorf("%v, which the Go backend does", err)
		return true
	}
	if !shape.Equal(wantShape) {
		t.Errorf("a %s and not a %s", shape, wantShape)
		return true
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	bad := 0
	for i := range g.Len() {
		at := make([]int, shape.Rank())
		for k, rest := shape.Rank()-1, i; k >= 0; k-- {
			at[k], rest = rest%shape.Dimensions[k], rest/shape.Dimensions[k]
		}
		if except != nil && except(at) || near(shape.DType, g.Index(i), w.Index(i)) {
			continue
		}
		if bad++; bad <= 5 {
			t.Errorf("at %v: %v, want %v", at, g.Index(i), w.Index(i))
		}
	}
	return true
}
