package compliance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// windowed is a random op over windows.
type windowed struct {
	dt                              dtypes.DType
	dims                            []int
	size, stride, spread, dilations []int
	pads                            [][2]int
}

func newWindowed(r *rand.Rand, dt dtypes.DType) windowed {
	w := windowed{dt: dt}
	rank := 1 + r.IntN(5)
	for range rank {
		w.dims = append(w.dims, 1+r.IntN(6))
		w.size = append(w.size, 1+r.IntN(3))
		w.stride = append(w.stride, 1+r.IntN(3))
		w.spread = append(w.spread, 1+r.IntN(3)*r.IntN(2))
		w.dilations = append(w.dilations, 1+r.IntN(2))
		w.pads = append(w.pads, [2]int{r.IntN(3), r.IntN(3)})
	}
	// Lists may be left out.
	for _, list := range []*[]int{&w.stride, &w.spread, &w.dilations, &w.size} {
		if r.IntN(4) == 0 {
			*list = nil
		}
	}
	if r.IntN(4) == 0 {
		w.pads = nil
	}
	if r.IntN(20) == 0 {
		w.dims[r.IntN(rank)] = 0
	}
	return w
}

// unusual are elements among which there are equal ones, and of floats zeros of
// both signs, infinities and NaN.
func unusual(r *rand.Rand, dt dtypes.DType, n int) any {
	if !dt.IsFloat() {
		flat := random(r, dt, n)
		for i := range n {
			if dt != dtypes.Bool && r.IntN(2) == 0 {
				reflect.ValueOf(flat).Index(i).Set(reflect.ValueOf(r.IntN(3)).Convert(dt.GoType()))
			}
		}
		return flat
	}
	some := []float64{0, math.Copysign(0, -1), 1, 1, 2, -1, -3, 0.5, math.Inf(1), math.Inf(-1), math.NaN()}
	list := make([]float64, n)
	for i := range list {
		list[i] = some[r.IntN(len(some))]
	}
	return fromFloats(dt, list)
}

// same compares an op with the Go backend's: values, or that both refuse it.
// Where the Go backend panics there is nothing to compare.
func same(t *testing.T, b, ref compute.Backend, args []arg, op func(compute.Function, []compute.Value) (compute.Value, error)) (compared, refused bool) {
	t.Helper()
	if agree(t, b, ref, args, nil, op) {
		return true, false
	}
	if _, _, err := evaluate(ref, args, op); strings.HasPrefix(err.Error(), "panic") {
		return false, false
	}
	if got, shape, err := evaluate(b, args, op); err == nil {
		t.Errorf("%v of %s, which the Go backend refuses", got, shape)
	} else if strings.HasPrefix(err.Error(), "panic") {
		t.Error(err)
	}
	return false, true
}

// tally counts what same found.
type tally struct{ compared, refused int }

func (c *tally) add(compared, refused bool) {
	if compared {
		c.compared++
	}
	if refused {
		c.refused++
	}
}

func (c *tally) check(t *testing.T, compared, refused int) {
	t.Helper()
	if t.Logf("compared %d, refused %d", c.compared, c.refused); c.compared < compared || c.refused < refused {
		t.Errorf("want at least %d and %d", compared, refused)
	}
}

func TestReduceWindowAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(21, 22))
	var n tally
	for i := range 400 {
		w := newWindowed(r, all[i%len(all)])
		if w.dt == dtypes.Bool && !windowsOfBool {
			continue
		}
		how := []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpMax, compute.ReduceOpProduct, compute.ReduceOpMin}[r.IntN(4)]
		x := arg{random(r, w.dt, product(w.dims)), w.dims}
		if r.IntN(2) == 0 && (how == compute.ReduceOpMax || how == compute.ReduceOpMin) {
			x.flat = unusual(r, w.dt, product(w.dims))
		}
		t.Run(fmt.Sprintf("%v %+v", how, w), func(t *testing.T) {
			n.add(same(t, b, ref, []arg{x}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				return f.ReduceWindow(in[0], how, w.size, w.stride, w.spread, w.dilations, w.pads)
			}))
		})
	}
	n.check(t, 150, 20)
}

// Windows and positions of bools are those of 0 and 1.
func TestBoolsAreNumbers(t *testing.T) {
	b := open(t, "millrace:cpu")
	r := rand.New(rand.NewPCG(27, 28))
	for range 100 {
		w := newWindowed(r, dtypes.Bool)
		bools := random(r, dtypes.Bool, product(w.dims)).([]bool)
		numbers := make([]uint8, len(bools))
		for i, x := range bools {
			if x {
				numbers[i] = 1
			}
		}
		for name, op := range map[string]fn{
			"max": func(f compute.Function, in []value) (value, error) {
				return f.ReduceWindow(in[0], compute.ReduceOpMax, w.size, w.stride, w.spread, w.dilations, w.pads)
			},
			"min": func(f compute.Function, in []value) (value, error) {
				return f.ReduceWindow(in[0], compute.ReduceOpMin, w.size, w.stride, w.spread, w.dilations, w.pads)
			},
			"argmax": func(f compute.Function, in []value) (value, error) { return f.ArgMinMax(in[0], 0, dtypes.Int32, false) },
			"argmin": func(f compute.Function, in []value) (value, error) { return f.ArgMinMax(in[0], 0, dtypes.Uint8, true) },
		} {
			want, shape, refused := evaluate(b, []arg{{numbers, w.dims}}, op)
			got, gotShape, err := evaluate(b, []arg{{bools, w.dims}}, op)
			if (err == nil) != (refused == nil) {
				t.Errorf("%s of %+v: %v, of numbers %v", name, w, err, refused)
				continue
			}
			if err != nil {
				continue
			}
			if name == "max" || name == "min" {
				list := make([]bool, shape.Size())
				for i, x := range want.([]uint8) {
					list[i] = x != 0
				}
				want = list
			}
			if !gotShape.EqualDimensions(shape) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %v, %+v: %v, want %v", name, bools, w, got, want)
			}
		}
	}
	for _, how := range []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpProduct} {
		if _, _, err := evaluate(b, []arg{{[]bool{true}, []int{1}}}, func(f compute.Function, in []value) (value, error) {
			return f.ReduceWindow(in[0], how, nil, nil, nil, nil, nil)
		}); err == nil {
			t.Errorf("the %v of bools", how)
		}
	}
}

// Windows along as many axes as there can be, which are more with the windows'.
func TestReduceWindowManyAxes(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	dims := []int{2, 3, 2, 3, 2, 3, 2, 3}
	x := arg{random(rand.New(rand.NewPCG(23, 24)), dtypes.Float32, product(dims)), dims}
	for _, how := range []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpMax, compute.ReduceOpMin} {
		if ok, _ := same(t, b, ref, []arg{x}, func(f compute.Function, in []compute.Value) (compute.Value, error) {
			return f.ReduceWindow(in[0], how, []int{1, 2, 2, 2, 1, 2, 1, 3}, []int{1, 1, 1, 2, 1, 2, 2, 1}, []int{1, 1, 2, 1, 1, 1, 1, 2}, nil, nil)
		}); !ok {
			t.Error("the Go backend does not do it")
		}
	}
}

func TestSelectAndScatterAgainstGo(t *testing.T) {
	b, ref := open(t, "millrace:cpu"), open(t, reference)
	r := rand.New(rand.NewPCG(25, 26))
	var n tally
	for i := range 400 {
		w := newWindowed(r, all[i%len(all)])
		source := slices.Clone(w.dims)
		size, stride, pads := w.size, w.stride, w.pads
		for a, d := range w.dims {
			k, s, p := 1, 1, [2]int{}
			if size != nil {
				k, s = size[a], size[a]
			}
			if stride != nil {
				s = stride[a]
			}
			if pads != nil {
				p = pads[a]
			}
			source[a] = max(0, (d+p[0]+p[1]-k)/s+1)
		}
		if r.IntN(20) == 0 {
			source[0]++
		}
		args := []arg{{unusual(r, w.dt, product(w.dims)), w.dims}, {random(r, w.dt, product(source)), source}}
		least := i%2 == 0
		t.Run(fmt.Sprintf("least %v %+v", least, w), func(t *testing.T) {
			n.add(same(t, b, ref, args, func(f compute.Function, in []compute.Value) (compute.Value, error) {
				if least {
					return f.SelectAndScatterMin(in[0], in[1], size, stride, pads)
				}
				return f.SelectAndScatterMax(in[0], in[1], size, stride, pads)
			}))
		})
	}
	n.check(t, 150, 20)
}
