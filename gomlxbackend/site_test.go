package gomlxbackend

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace"
)

// outer is a graph whose result, of n*n numbers, is Tanh of an outer product. Nodes that nothing
// needs, pad of them, change the numbers of the others and not the form.
func outer(b *Backend, n, pad int) compute.Executable {
	bd := b.Builder("outer")
	f := bd.Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, n, 1), nil))
	for range pad {
		x := must(f.Neg(x))
		must(f.Exp(x))
	}
	y := must(f.Transpose(x, 1, 0))
	all := must(f.DotGeneral(x, []int{1}, nil, y, []int{0}, nil, compute.DotGeneralConfig{}))
	if err := f.Return([]compute.Value{must(f.Tanh(all))}, nil); err != nil {
		panic(err)
	}
	return must(bd.Compile())
}

// failsAt checks that an error names a node and holds the engine's error.
func failsAt(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\ndoes not have %q", err, w)
		}
	}
	var op *millrace.OpError
	if !errors.Is(err, millrace.ErrOutOfMemory) || !errors.As(err, &op) || op.Op == "" {
		t.Errorf("%v\nis not ErrOutOfMemory of an op", err)
	}
	if strings.Contains(err.Error(), ".go:") {
		t.Errorf("%v\nnames a line of the backend", err)
	}
}

// An error of a run names the node whose op failed, also where a graph of the same form came
// earlier, and where the graph ran before.
func TestErrorsOfRunsNameTheNode(t *testing.T) {
	const n = 256 // a result of 256 KiB
	b := openBackend(t, "cpu,memory=1MiB,cache=off")
	column := upload(t, b, make([]float32, n), n, 1)
	for pad, node := range []string{", node 2", ", node 4"} {
		e := outer(b, n, pad)
		var kept []compute.Buffer
		for range 16 {
			out, err := e.Execute([]compute.Buffer{column}, nil, 0)
			if err == nil {
				kept = append(kept, out...)
				continue
			}
			failsAt(t, err, `Execute of "outer"`, "DotGeneral((Float32)[256, 1], (Float32)[1, 256])"+node)
		}
		if len(kept) == 0 || len(kept) == 16 {
			t.Errorf("%d of 16 runs had the memory", len(kept))
		}
		for _, out := range kept {
			if err := out.Finalize(); err != nil {
				t.Fatal(err)
			}
		}
		e.Finalize()
	}
}

// An error within a closure names the closure's node.
func TestErrorsOfRunsInClosures(t *testing.T) {
	b := openBackend(t, "cpu,memory=1MiB,cache=off")
	bd := b.Builder("loop")
	f := bd.Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 512), nil))
	closure := func(do func(c compute.Function, x compute.Value) compute.Value) compute.Function {
		c := must(f.Closure())
		x := must(c.Parameter("x", shapes.Make(dtypes.Float32, 512), nil))
		if err := c.Return([]compute.Value{do(c, x)}, nil); err != nil {
			t.Fatal(err)
		}
		return c
	}
	less := closure(func(c compute.Function, x compute.Value) compute.Value {
		return must(c.LessThan(must(c.ReduceMax(x)), must(c.Constant([]float32{1}))))
	})
	grow := closure(func(c compute.Function, x compute.Value) compute.Value {
		column, row := must(c.Reshape(x, 512, 1)), must(c.Reshape(x, 1, 512))
		all := must(c.DotGeneral(column, []int{1}, nil, row, []int{0}, nil, compute.DotGeneralConfig{}))
		return must(c.DotGeneral(all, []int{1}, nil, must(c.Exp(x)), []int{0}, nil, compute.DotGeneralConfig{}))
	})
	out, err := f.While(less, grow, x)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	_, err = e.Execute([]compute.Buffer{upload(t, b, make([]float32, 512), 512)}, nil, 0)
	failsAt(t, err, "DotGeneral, node ", " of a closure: ")
}
