package gputest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// testRowsBeside tests rows side by side in memory that the invocations of a workgroup share, as on
// hardware: with parameters of all rows and of each row, in place, and for positions.
func testRowsBeside(t *testing.T) {
	for _, size := range []int{0, 16} {
		besideRows(t, openAs(t, func(i *gpurun.Info) {
			hardware(i)
			if i.Limits.Shuffles && size > 0 { // larger than they are on most adapters: shaders find that out
				i.Limits.Subgroup = size
			}
		}))
	}
}

func besideRows(t *testing.T, d *device) {
	kernels := map[string]string{
		"argmax": "in 0 : float32\nout 1 : int32 row\n%0 = load 0 : float32\n%1 = argmax %0 : int32\nstore 1 %1",
		"any":    "in 0 : bool\nout 1 : bool row\n%0 = load 0 : bool\n%1 = any %0 : bool\nstore 1 %1",
	}
	for name, src := range eachKernels {
		if name != "mix" { // a scan
			kernels[name] = src
		}
	}
	for name, src := range kernels {
		for _, c := range []struct {
			kept int
			dims []int64
		}{{1, []int64{64, 64}}, {2, []int64{3, 96, 101}}, {1, []int64{96, 9, 50}}} {
			t.Run(fmt.Sprintf("%s/%v", name, c.dims), func(t *testing.T) {
				x := newTrial(parse(t, src), c.kept, c.dims...)
				for i := range x.args { // rows are side by side
					if o := x.k.Operands[i]; !o.Row {
						lay(x, i)
					}
				}
				if name == "norm" || name == "scaled" {
					clear(x.args[2].Stride[:])
					for r, n := len(c.dims)-1, int64(1); r >= c.kept; r-- {
						x.args[2].Stride[r], n = n, n*c.dims[r]
					}
				}
				x.fillPositiveRows(rand.New(rand.NewPCG(1, 2)))
				x.allScalars(float32(points(c.dims[c.kept:])))
				if name == "softmax" { // in place
					x.shared[1] = 0
				}
				l := x.check(t, d, ir.Tolerance{Abs: 1e-5, Rel: 1e-5})
				if v := d.Source(l.Prog); len(v) != 1 || !strings.Contains(v[0].Source, " slice = ") {
					t.Errorf("%d shaders; rows are not beside each other\n%s", len(v), v[0].Source)
				}
			})
		}
	}
}

// lay gives an operand's elements an order in which the last kept dim moves by one.
func lay(x *trial, operand int) {
	n := int64(1)
	order := []int{x.kept - 1}
	for d := len(x.dims) - 1; d >= 0; d-- {
		if d != x.kept-1 {
			order = append(order, d)
		}
	}
	for _, d := range order {
		x.args[operand].Stride[d] = n
		n *= x.dims[d]
	}
}
