package everyday

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/optable"
)

type tensor = millrace.Tensor

// given is a line of testdata/numpy.json, or torch.json.
type given = optable.Case

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

func floatsOf(t *testing.T, a optable.Array) []float64 {
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

// tensorOf makes a tensor of the values in their dtype, on a device that has the dtype.
func tensorOf(t *testing.T, a optable.Array, p millrace.Place) *tensor {
	t.Helper()
	vs := floatsOf(t, a)
	switch a.Type() {
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

// call is the call of a case's op.
func call(t *testing.T, c *given) optable.Peer {
	t.Helper()
	p, ok := optable.PeerNamed(c.Op)
	if !ok {
		t.Fatalf("no call for %q", c.Op)
	}
	return p
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
		if x.DType() != want.Type() || !slices.Equal(x.Shape(), append([]int{}, want.Shape...)) {
			t.Errorf("%v, result %d: %v%v, want %v%v", c, k, x.DType(), x.Shape(), want.Type(), want.Shape)
			return
		}
		for i, w := range floatsOf(t, want) {
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
