package everyday

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

type tensor = millrace.Tensor

// given is a line of testdata/numpy.json, or torch.json.
type given struct {
	Op, Group string
	Spec      string
	Args      map[string][]float64
	In, Out   []array
	Tol       float64
}

type array struct {
	DType, Values string
	Shape         []int
}

func (c *given) n(name string) int     { return int(c.Args[name][0]) }
func (c *given) f(name string) float64 { return c.Args[name][0] }
func (c *given) list(name string) []int {
	var l []int
	for _, x := range c.Args[name] {
		l = append(l, int(x))
	}
	return l
}

func (c *given) String() string {
	var s []string
	for _, a := range c.In {
		s = append(s, fmt.Sprint(a.DType, a.Shape))
	}
	return fmt.Sprint(c.Op, c.Args, s, " to ", c.Out[0].DType)
}

func cases(t *testing.T) []given {
	t.Helper()
	var all []given
	for _, name := range []string{"numpy.json", "torch.json"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var list []given
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	for i := range all { // an op's name may be followed by an argument
		all[i].Op, all[i].Spec, _ = strings.Cut(all[i].Op, " ")
	}
	return all
}

var dtypes = map[string]millrace.DType{
	"bool": millrace.Bool, "uint8": millrace.Uint8, "uint16": millrace.Uint16, "uint32": millrace.Uint32, "uint64": millrace.Uint64,
	"int8": millrace.Int8, "int16": millrace.Int16, "int32": millrace.Int32, "int64": millrace.Int64,
	"float16": millrace.Float16, "float32": millrace.Float32, "float64": millrace.Float64,
}

func (a array) dtype() millrace.DType { return dtypes[a.DType] }

func (a array) floats(t *testing.T) []float64 {
	t.Helper()
	vs := []float64{}
	for _, w := range strings.Fields(a.Values) {
		x, err := strconv.ParseFloat(w, 64)
		if err != nil {
			t.Fatal(err)
		}
		vs = append(vs, x)
	}
	return vs
}

// tensor makes a tensor of the values in their dtype, on a device that has the dtype.
func (a array) tensor(t *testing.T, p millrace.Place) *tensor {
	t.Helper()
	vs := a.floats(t)
	switch a.dtype() {
	case millrace.Float32:
		return made[float32](p, vs, a.Shape)
	case millrace.Float64:
		return made[float64](p, vs, a.Shape)
	case millrace.Int64:
		return made[int64](p, vs, a.Shape)
	case millrace.Uint32:
		return made[uint32](p, vs, a.Shape)
	case millrace.Int8:
		return made[int8](p, vs, a.Shape)
	case millrace.Uint8:
		return made[uint8](p, vs, a.Shape)
	case millrace.Int16:
		return made[int16](p, vs, a.Shape)
	case millrace.Uint16:
		return made[uint16](p, vs, a.Shape)
	case millrace.Int32:
		return made[int32](p, vs, a.Shape)
	case millrace.Bool:
		b := make([]bool, len(vs))
		for i, x := range vs {
			b[i] = x != 0
		}
		return millrace.FromSliceOn(p, b, append([]int{}, a.Shape...)...)
	}
	t.Fatalf("inputs of %s", a.DType)
	return nil
}

func made[T interface {
	float32 | float64 | int64 | uint32 | int8 | uint8 | int16 | uint16 | int32
}](p millrace.Place, vs []float64, shape []int) *tensor {
	data := make([]T, len(vs))
	for i, x := range vs {
		data[i] = T(x)
	}
	return millrace.FromSliceOn(p, data, append([]int{}, shape...)...)
}

// elements reads any dtype as float64, as exactly as possible.
func elements(x *tensor) ([]float64, error) {
	switch x.DType() {
	case millrace.Bool:
		return elements(x.Cast(millrace.Uint8))
	case millrace.Float64:
		return millrace.Values[float64](x)
	case millrace.Int64:
		return converted[int64](x)
	case millrace.Uint32:
		return converted[uint32](x)
	case millrace.Uint64:
		return converted[uint64](x)
	case millrace.Float32:
		return converted[float32](x)
	case millrace.Float16, millrace.BFloat16:
		return converted[float32](x.Cast(millrace.Float32))
	}
	return converted[int32](x.Cast(millrace.Int32))
}

func converted[T interface {
	float32 | int64 | uint32 | uint64 | int32
}](x *tensor) ([]float64, error) {
	vs, err := millrace.Values[T](x)
	out := make([]float64, len(vs))
	for i, v := range vs {
		out[i] = float64(v)
	}
	return out, err
}

// compare compares results with the given ones, floats within tol of the larger of 1 and the
// number.
func compare(t *testing.T, c *given, got []*tensor, tol, scale float64) {
	t.Helper()
	if len(got) != len(c.Out) {
		t.Errorf("%v: %d results, want %d: %v", c, len(got), len(c.Out), got)
		return
	}
	for k, x := range got {
		want := c.Out[k]
		vs, err := elements(x)
		if err != nil {
			t.Errorf("%v: %v", c, err)
			return
		}
		if x.DType() != want.dtype() || !slices.Equal(x.Shape(), append([]int{}, want.Shape...)) {
			t.Errorf("%v, result %d: %v%v, want %v%v", c, k, x.DType(), x.Shape(), want.dtype(), want.Shape)
			return
		}
		for i, w := range want.floats(t) {
			if x.DType().IsFloat() {
				w *= scale
			}
			if x.DType() == millrace.Float32 {
				w = float64(float32(w))
			}
			g := vs[i]
			if g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= tol*max(scale, math.Abs(w)) {
				continue
			}
			t.Errorf("%v, result %d, element %d: %v, want %v", c, k, i, g, w)
			return
		}
	}
}
