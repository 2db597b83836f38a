package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/nn"
)

// reference is PyTorch's numbers as written by testdata/reference.py.
type reference struct {
	Shapes [][]int
	Kept   []int
	Start  []float64
	Grads  [][]float64
	Cases  []struct {
		Name             string
		Float32, Float64 [][]float64
	}
}

func readReference(t *testing.T) *reference {
	t.Helper()
	var r reference
	readJSON(t, "testdata/rules.json", &r)
	return &r
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, options string) *millrace.Device {
	t.Helper()
	dev, err := millrace.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// tensors cuts a list of numbers into tensors.
func tensors(at millrace.Place, dt millrace.DType, shapes [][]int, data []float64) []*millrace.Tensor {
	var list []*millrace.Tensor
	for _, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		t := millrace.FromSliceOn(at, data[:n], shape...)
		if len(shape) == 0 {
			t = millrace.ScalarOn(at, data[0])
		}
		list = append(list, t.Cast(dt))
		data = data[n:]
	}
	return list
}

func parameters(ts []*millrace.Tensor) []nn.Named {
	var list []nn.Named
	for i, t := range ts {
		list = append(list, nn.Named{Name: fmt.Sprintf("p%d", i), Param: nn.NewParam(t)})
	}
	return list
}

// numbers returns all elements of parameters.
func numbers(t testing.TB, params []nn.Named) []float64 {
	t.Helper()
	var list []float64
	for _, p := range params {
		v, err := millrace.Values[float64](p.Tensor().Cast(millrace.Float64))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v...)
	}
	return list
}

// parse makes the optimiser that a case's name describes.
func parse(t *testing.T, name string, params []nn.Named, more ...Option) *Optimizer {
	t.Helper()
	words := strings.Fields(name)
	opts := more
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		var v [2]float64
		for i, s := range strings.Split(value, ",") {
			v[i], _ = strconv.ParseFloat(s, 64)
		}
		make := map[string]func() Option{
			"lr": func() Option { return LR(v[0]) }, "momentum": func() Option { return Momentum(v[0]) },
			"dampening": func() Option { return Dampening(v[0]) }, "nesterov": Nesterov, "amsgrad": AMSGrad,
			"decay": func() Option { return WeightDecay(v[0]) }, "betas": func() Option { return Betas(v[0], v[1]) },
			"eps": func() Option { return Eps(v[0]) }, "alpha": func() Option { return Alpha(v[0]) }, "centered": Centered,
			"ratedecay": func() Option { return RateDecay(v[0]) }, "initial": func() Option { return Initial(v[0]) },
			"clipnorm": func() Option { return ClipNorm(v[0]) }, "clipvalue": func() Option { return ClipValue(v[0]) },
		}[key]
		if make == nil {
			t.Fatalf("no option %q", key)
		}
		opts = append(opts, make())
	}
	make := map[string]func([]nn.Named, ...Option) *Optimizer{
		"SGD": SGD, "Adam": Adam, "AdamW": AdamW, "RMSProp": RMSProp, "Adagrad": Adagrad, "Lion": Lion, "LAMB": LAMB,
	}[words[0]]
	return make(params, opts...)
}

// TestRules compares every rule, with its options, with PyTorch's numbers.
func TestRules(t *testing.T) {
	ref := readReference(t)
	dev := open(t, "cpu:cache=off,compile=off")
	for _, c := range ref.Cases {
		for _, dt := range []millrace.DType{millrace.Float32, millrace.Float64} {
			want, tol := c.Float32, 1e-6
			if dt == millrace.Float64 {
				want, tol = c.Float64, 1e-12
			}
			t.Run(fmt.Sprintf("%s/%v", c.Name, dt), func(t *testing.T) {
				params := parameters(tensors(dev, dt, ref.Shapes, ref.Start))
				o := parse(t, c.Name, params)
				kept := 0
				for step, data := range ref.Grads {
					if err := o.Update(tensors(dev, dt, ref.Shapes, data)); err != nil {
						t.Fatal(err)
					}
					if step+1 != ref.Kept[kept] {
						continue
					}
					close(t, fmt.Sprint("step ", step+1), numbers(t, params), want[kept], tol)
					kept++
				}
			})
		}
	}
}

// close compares numbers relative to their size. Numbers below 1 are compared absolutely, because
// they are differences of numbers near 1.
func close(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol*max(math.Abs(want[i]), 1)) {
			t.Errorf("%s: number %d is %v, want %v: off by %.2g", what, i, got[i], want[i], d/math.Abs(want[i]))
		}
	}
}
