package gputest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// abreastKernels are row ops of a dtype, and kernels that read their rows several times.
func abreastKernels(dt string) map[string]string {
	list := rowsByOne(dt)
	switch dt {
	case "float32":
		list["softmax"], list["norm"], list["scaled"] = rowtext.Softmax, rowtext.Norm, eachKernels["scaled"]
	case "int32":
		list["mix"] = eachKernels["mix"]
	case "bool":
		return map[string]string{"any": reduceKernel("any", dt), "all": reduceKernel("all", dt)}
	}
	return list
}

// testRowsAbreast: workgroups that take several rows have the results of the interpreter, also for NaN,
// infinities and zeros of both signs, in place, and with a last workgroup that has fewer rows. Of the
// adapter it is said that its subgroups are smaller than they are, and larger: then a shader finds
// that out. Where the adapter cannot shuffle, only the shaders of software adapters take several rows.
func testRowsAbreast(t *testing.T) {
	g, err := under.Open("")
	if err != nil {
		missing(t, err)
	}
	can := g.Info().Limits
	_ = g.Close()
	if under.Subgroups == runtime.SubgroupsOff || under.Dialect.Shuffles == "" {
		can.Shuffles = false
	}
	type how struct {
		name             string
		size             int // of subgroups, as the adapter says; 0 for its own
		kind             func(*gpurun.Info)
		shuffle, cluster bool
	}
	list := []how{{"software", 0, software, false, false}}
	if can.Shuffles {
		for _, size := range []int{4, 0, 16, 64} {
			list = append(list, how{fmt.Sprintf("subgroups of %d", size), size, hardware, true, false})
		}
		if can.Clusters {
			list = append(list, how{"clusters of 4", 4, hardware, true, true}, how{"clusters", 0, hardware, true, true})
		}
	}
	for _, h := range list {
		d := openAs(t, func(info *gpurun.Info) {
			h.kind(info)
			l := &info.Limits
			if h.size > 0 {
				l.Subgroup = h.size
			}
			l.Shuffles, l.Clusters = h.shuffle, h.cluster
		})
		for _, dt := range []string{"float32", "int32", "uint8", "bool"} {
			if dt != "float32" && (h.size > 0 || h.cluster) {
				continue
			}
			for name, text := range abreastKernels(dt) {
				t.Run(h.name+"/"+name+" of "+dt, func(t *testing.T) {
					taken := 0
					lengths := []int64{33, 36, 257}
					if dt == "float32" {
						lengths = []int64{7, 8, 33, 64, 252}
					}
					for _, n := range lengths {
						rows := 1<<15*4/n + 5 // the last workgroup has fewer
						if n > 128 {
							rows = 1<<10 + 1
						}
						if rowsAbreast(t, d, name, text, rows, n) {
							taken++
						}
					}
					if taken == 0 {
						t.Error("no workgroup takes several rows")
					}
				})
			}
		}
	}
}

// rowsAbreast checks rows of n points, and reports whether workgroups take several rows.
func rowsAbreast(t *testing.T, d *device, name, text string, rows, n int64) bool {
	t.Helper()
	x := newTrial(parse(t, text), 1, rows, n)
	rng := rand.New(rand.NewPCG(uint64(n), uint64(len(text))))
	x.fillPositiveRows(rng)
	x.allScalars(float32(n))
	tol := ir.Tolerance{Rel: 1e-4, Abs: 2e-6 * float64(n)}
	switch {
	case name == "scaled" || name == "norm": // one weight for all rows
		clear(x.args[2].Stride[:1])
		x.args[2].Stride[1] = 1
	case name == "softmax":
		x.shared[1] = 0 // in place
	case x.k.Operands[0].DT == ir.Float32:
		x.odd(rng, strings.HasSuffix(name, "prod"))
	}
	l := x.check(t, d, tol)
	return strings.Contains(sources(d, l), " abreast = ")
}

// testRowsAbreastLayouts puts rows between other elements, so that only some start at vectors, and
// gives rows several dims.
func testRowsAbreastLayouts(t *testing.T) {
	for _, kind := range []func(*gpurun.Info){hardware, software} {
		d := openAs(t, kind)
		for _, c := range []struct {
			kept int
			dims []int64
		}{{2, []int64{5, 1000, 8}}, {1, []int64{300, 3, 12}}, {2, []int64{3, 301, 36}}} {
			for _, text := range map[string]string{"norm": rowtext.Norm, "cumsum": rowsByOne("float32")["cumsum"], "argmin": rowsByOne("float32")["argmin"]} {
				for _, more := range []int64{0, 1, 4} {
					x := newTrial(parse(t, text), c.kept, c.dims...)
					for i := range x.args { // rows are that much apart
						if !x.k.Operands[i].Row {
							x.spread(i, more)
						}
					}
					x.fillPositiveRows(rand.New(rand.NewPCG(uint64(more), 3)))
					x.allScalars(float32(points(c.dims[c.kept:])))
					x.check(t, d, ir.Tolerance{Rel: 1e-4, Abs: 1e-4})
				}
			}
		}
	}
}

// spread leaves more elements between the rows of an operand, and as many before the first.
func (x *trial) spread(operand int, more int64) {
	a := &x.args[operand]
	n := int64(1)
	for d := len(x.dims) - 1; d >= 0; d-- {
		if d == x.kept-1 {
			n += more
		}
		a.Stride[d] = n
		n *= x.dims[d]
	}
	a.Offset = more
	a.Data = make([]byte, (n+more)*int64(x.k.Operands[operand].DT.Size()))
}

// benchShortRows times many short rows, by shaders of this adapter.
func benchShortRows(b *testing.B) {
	d := openDevice(b, runtime.Config{})
	kernels := abreastKernels("float32")
	for _, op := range []string{"sum", "max", "argmax", "cumsum", "softmax", "norm"} {
		for _, dims := range [][]int64{{1000000, 8}, {100000, 33}, {65536, 64}, {16384, 256}, {4096, 1000}, {4096, 1023}} {
			b.Run(fmt.Sprintf("%s/%dx%d", op, dims[0], dims[1]), func(b *testing.B) {
				x := newTrial(parse(b, kernels[op]), 1, dims...)
				x.fillInputs(rand.New(rand.NewPCG(5, 6)))
				x.allScalars(float32(dims[1]))
				l := x.warm(b, d)
				for b.Loop() {
					must(b, runAndWait(d, []runtime.Launch{*l}))
				}
			})
		}
	}
}
