package compliance

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type values = []compute.Value

// graph runs a graph of float32 vectors of two elements and a scalar int32.
func graph(t *testing.T, b compute.Backend, n int32, build func(f compute.Function, x, n compute.Value) values) [][]float32 {
	t.Helper()
	bd := b.Builder("control")
	f := bd.Main()
	vector := shapes.Make(dtypes.Float32, 2)
	x := must(f.Parameter("x", vector, nil))
	count := must(f.Parameter("n", shapes.Make(dtypes.Int32), nil))
	if err := f.Return(build(f, x, count), nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	var all [][]float32
	for range 2 { // what one run does must not change the next
		in := []compute.Buffer{must(b.BufferFromFlatData(0, []float32{1, 2}, vector)), must(b.BufferFromFlatData(0, []int32{n}, shapes.Make(dtypes.Int32)))}
		out, err := e.Execute(in, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = nil
		for _, buf := range out {
			flat := make([]float32, 2)
			if err := buf.ToFlatData(flat); err != nil {
				t.Fatal(err)
			}
			all = append(all, flat)
		}
	}
	return all
}

func int32s(f compute.Function, x int32) compute.Value {
	return must(f.Constant([]int32{x}))
}

func closure(f compute.Function, build func(c compute.Function) values) compute.Function {
	c := must(f.Closure())
	if err := c.Return(build(c), nil); err != nil {
		panic(err)
	}
	return c
}

// Each graph on Millrace and on the Go backend, which must agree with what is
// wanted too.
func TestControlFlow(t *testing.T) {
	vector := shapes.Make(dtypes.Float32, 2)
	scalar := shapes.Make(dtypes.Int32)
	for _, c := range []struct {
		name  string
		n     int32
		build func(f compute.Function, x, n compute.Value) values
		want  [][]float32
	}{
		{"if", 1, func(f compute.Function, x, n compute.Value) values {
			twice := must(f.Add(x, x))
			return must(f.If(must(f.GreaterThan(n, int32s(f, 0))),
				closure(f, func(c compute.Function) values { return values{must(c.Neg(x)), twice, x} }),
				closure(f, func(c compute.Function) values { return values{x, x, must(c.Exp(x))} })))
		}, [][]float32{{-1, -2}, {2, 4}, {1, 2}}},
		{"else", 0, func(f compute.Function, x, n compute.Value) values {
			return must(f.If(must(f.GreaterThan(n, int32s(f, 0))),
				closure(f, func(c compute.Function) values { return values{must(c.Neg(x)), must(c.Constant([]float32{5, 6}, 2))} }),
				closure(f, func(c compute.Function) values { y := must(c.Mul(x, x)); return values{y, y} })))
		}, [][]float32{{1, 4}, {1, 4}}},
		{"while", 5, func(f compute.Function, x, n compute.Value) values {
			step := must(f.Constant([]float32{1, 10}, 2))
			return must(f.While(
				closure(f, func(c compute.Function) values {
					i := must(c.Parameter("i", scalar, nil))
					must(c.Parameter("y", vector, nil))
					must(c.Parameter("z", vector, nil))
					return values{must(c.LessThan(i, n))}
				}),
				closure(f, func(c compute.Function) values {
					i, y, z := must(c.Parameter("i", scalar, nil)), must(c.Parameter("y", vector, nil)), must(c.Parameter("z", vector, nil))
					return values{must(c.Add(i, int32s(c, 1))), must(c.Add(y, step)), z}
				}),
				int32s(f, 0), x, x))[1:]
		}, [][]float32{{6, 52}, {1, 2}}},
		{"while not", 0, func(f compute.Function, x, n compute.Value) values {
			return must(f.While(
				closure(f, func(c compute.Function) values {
					must(c.Parameter("y", vector, nil))
					return values{must(c.GreaterThan(n, int32s(c, 0)))}
				}),
				closure(f, func(c compute.Function) values { return values{must(c.Neg(must(c.Parameter("y", vector, nil))))} }),
				x))
		}, [][]float32{{1, 2}}},
		{"swap", 3, func(f compute.Function, x, n compute.Value) values {
			return must(f.While(
				closure(f, func(c compute.Function) values {
					i := must(c.Parameter("i", scalar, nil))
					must(c.Parameter("y", vector, nil))
					must(c.Parameter("z", vector, nil))
					return values{must(c.LessThan(i, n))}
				}),
				closure(f, func(c compute.Function) values {
					i, y, z := must(c.Parameter("i", scalar, nil)), must(c.Parameter("y", vector, nil)), must(c.Parameter("z", vector, nil))
					return values{must(c.Add(i, int32s(c, 1))), z, y}
				}),
				int32s(f, 0), x, must(f.Neg(x))))[1:]
		}, [][]float32{{-1, -2}, {1, 2}}},
		{"nested", 3, func(f compute.Function, x, n compute.Value) values {
			three := must(f.Constant([]float32{3}))
			return must(f.While(
				closure(f, func(c compute.Function) values {
					i := must(c.Parameter("i", scalar, nil))
					must(c.Parameter("y", vector, nil))
					return values{must(c.LessThan(i, n))}
				}),
				closure(f, func(c compute.Function) values {
					i, y := must(c.Parameter("i", scalar, nil)), must(c.Parameter("y", vector, nil))
					picked := must(c.If(must(c.Equal(i, int32s(c, 1))),
						closure(c, func(d compute.Function) values { return values{must(d.Mul(y, three))} }),
						closure(c, func(d compute.Function) values { return values{must(d.Add(y, x))} })))
					return values{must(c.Add(i, int32s(c, 1))), picked[0]}
				}),
				int32s(f, 0), x))[1:]
		}, [][]float32{{7, 14}}},
		{"call", 1, func(f compute.Function, x, n compute.Value) values {
			g := must(f.Builder().NewFunction("g"))
			a, b := must(g.Parameter("a", vector, nil)), must(g.Parameter("b", vector, nil))
			if err := g.Return(values{must(g.Sub(a, b)), a, a}, nil); err != nil {
				panic(err)
			}
			first := must(f.Call(g, x, must(f.Neg(x))))
			return append(first[:2:2], must(f.Call(g, first[0], first[1]))[0])
		}, [][]float32{{2, 4}, {1, 2}, {1, 2}}},
	} {
		backends := []string{"millrace:cpu", reference}
		if c.name == "else" || c.name == "call" {
			backends = backends[:1] // the Go backend's closures have no result twice
		}
		for _, backend := range backends {
			t.Run(c.name+"/"+backend, func(t *testing.T) {
				got := graph(t, open(t, backend), c.n, c.build)
				if !slices.EqualFunc(got, c.want, slices.Equal) {
					t.Errorf("%v, want %v", got, c.want)
				}
			})
		}
	}
}

// Closures that do not fit.
func TestBadClosures(t *testing.T) {
	b := open(t, "millrace:cpu")
	bd := b.Builder("bad")
	f := bd.Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2), nil))
	p := must(f.Parameter("p", shapes.Make(dtypes.Bool), nil))
	same := closure(f, func(c compute.Function) values { return values{x} })
	more := closure(f, func(c compute.Function) values { return values{x, x} })
	takes := closure(f, func(c compute.Function) values {
		return values{must(c.Neg(must(c.Parameter("y", shapes.Make(dtypes.Float32, 2), nil))))}
	})
	open := must(f.Closure())
	inner := closure(open, func(c compute.Function) values { return values{must(c.Constant([]float32{1, 2}, 2))} })
	for want, do := range map[string]func() ([]compute.Value, error){
		"If(":                       func() ([]compute.Value, error) { return f.If(x, same, same) },
		"the true branch has 1":     func() ([]compute.Value, error) { return f.If(p, takes, takes) },
		"1 results instead of 2":    func() ([]compute.Value, error) { return f.If(p, more, same) },
		"has not returned":          func() ([]compute.Value, error) { return f.If(p, open, same) },
		"not a closure of function": func() ([]compute.Value, error) { return f.If(p, inner, same) },
		"the false branch is a":     func() ([]compute.Value, error) { return f.If(p, same, nil) },
		"at least one":              func() ([]compute.Value, error) { return f.While(same, same) },
		"the condition's result":    func() ([]compute.Value, error) { return f.While(takes, takes, x) },
		"Call((Float32)[2], (Boo":   func() ([]compute.Value, error) { return f.Call(takes, x, p) },
	} {
		if _, err := do(); err == nil || !strings.Contains(err.Error(), want) || compute.IsNotImplemented(err) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := bd.NewFunction("main"); err == nil {
		t.Error("a second main")
	}
	stranger := must(must(f.Closure()).Parameter("s", shapes.Make(dtypes.Float32, 2), nil))
	if _, err := f.Add(x, stranger); err == nil {
		t.Error("a closure's value outside of it")
	}
}

// GoMLX asks the builder for the shape of any value, those of closures too.
func TestShapeOfClosures(t *testing.T) {
	b := open(t, "millrace:cpu")
	bd := b.Builder("shapes")
	c := must(bd.Main().Closure())
	want := shapes.Make(dtypes.Float32, 3)
	x := must(c.Parameter("x", want, nil))
	named := must(bd.NewFunction("named"))
	y := must(named.Parameter("y", want, nil))
	for _, v := range []compute.Value{x, y} {
		if got, err := bd.OpShape(v); err != nil || !got.Equal(want) {
			t.Errorf("OpShape: %s, %v", got, err)
		}
		if got, err := bd.Main().Shape(v); err != nil || !got.Equal(want) {
			t.Errorf("Shape: %s, %v", got, err)
		}
	}
	if _, err := b.Builder("other").OpShape(x); err == nil {
		t.Error("another builder knows the value")
	}
}
