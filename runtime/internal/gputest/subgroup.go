package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// WithoutSubgroups runs all suites without subgroups if the adapter has some; with subgroups in
// MILLRACE_REQUIRE it must have them.
func WithoutSubgroups(t *testing.T, x Target) {
	g, err := x.Open("")
	if err != nil {
		Missing(t, x.Name, err)
	}
	size := g.Info().Limits.Subgroup
	_ = g.Close()
	if size == 0 {
		Missing(t, "subgroups", "the adapter has none")
	}
	x.Subgroups, x.Options = runtime.SubgroupsOff, "subgroups=off"
	Run(t, x)
}

// rowsByOne are kernels of rows that take one workgroup each.
func rowsByOne(dt string) map[string]string {
	list := map[string]string{}
	for _, op := range []string{"sum", "prod", "max", "min"} {
		list[op] = reduceKernel(op, dt)
	}
	for _, op := range []string{"argmax", "argmin"} {
		list[op] = fmt.Sprintf("in 0 : %s\nout 1 : int32 row\n%%0 = load 0 : %s\n%%1 = %s %%0 : int32\nstore 1 %%1", dt, dt, op)
	}
	for _, op := range []string{"cumsum", "cumprod", "cummax", "cummin"} {
		list[op] = fmt.Sprintf("in 0 : %s\nout 1 : %s\n%%0 = load 0 : %s\n%%1 = %s %%0 : %s\nstore 1 %%1", dt, dt, dt, op, dt)
	}
	return list
}

// testSubgroups: rows have the same results by subgroups, also for NaN and zeros of both signs.
// They use subgroups if, and only if, the adapter has some.
func testSubgroups(t *testing.T) {
	for _, kind := range []func(*gpurun.Info){hardware, software} {
		d := openAs(t, kind)
		used := strings.Contains(d.Caps().Description, "subgroups of ")
		check := func(name string, x *trial, tol ir.Tolerance) {
			t.Helper()
			l := x.check(t, d, tol)
			if got := strings.Contains(sources(d, l), "subgroupElect()"); got != used {
				t.Errorf("%s on %s: subgroups are used: %v, want %v", name, d.Caps().Description, got, used)
			}
		}
		types, lengths := []string{"float32"}, []int64{300} // other suites cover the dtypes that take another path
		if used {
			types, lengths = []string{"float32", "int32", "uint8"}, []int64{300, 4096}
		}
		for _, dt := range types {
			for op, text := range rowsByOne(dt) {
				for _, n := range lengths {
					if dt != "float32" && n != lengths[0] {
						continue
					}
					x := newTrial(parse(t, text), 1, 3, n)
					rng := rand.New(rand.NewPCG(uint64(n), 4))
					x.fillInputs(rng)
					tol := ir.Tolerance{Rel: 1e-4, Abs: 2e-6 * float64(n)}
					if dt == "float32" {
						x.odd(rng, strings.HasSuffix(op, "prod"))
					}
					check(op+" of "+dt, x, tol)
				}
			}
		}
		for name, text := range map[string]string{"any": reduceKernel("any", "bool"), "all": reduceKernel("all", "bool"), "softmax": rowtext.Softmax, "norm": rowtext.Norm} {
			for _, n := range []int64{260, 2048} {
				x := newTrial(parse(t, text), 1, 5, n)
				x.fillInputs(rand.New(rand.NewPCG(uint64(n), 5)))
				x.allScalars(float32(n))
				check(name, x, ir.Tolerance{Rel: 1e-4, Abs: 1e-5})
			}
		}
	}
}

// odd makes one row of zeros of both signs and negative numbers, and puts NaN, infinities or both
// into the others; for products, the numbers are near one.
func (x *trial) odd(rng *rand.Rand, near bool) {
	data := x.args[0].Data
	row := len(data) / 3
	for i := 0; i < len(data); i += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		switch {
		case near:
			v = 1 + v/1e4
		case i < row:
			v = min(v, float32(math.Copysign(0, -1)))
		}
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(v))
	}
	for r, list := range [][]float64{{}, {math.Inf(-1), math.Copysign(math.NaN(), -1)}, {math.Inf(1)}} {
		for _, v := range list {
			binary.LittleEndian.PutUint32(data[r*row+rng.IntN(row/4)*4:], math.Float32bits(float32(v)))
		}
	}
}

// benchRows times 16 MB of rows by shaders of hardware and of software adapters, with subgroups if
// there are some, and without.
func benchRows(b *testing.B) {
	for name, kind := range map[string]func(*gpurun.Info){"as hardware": hardware, "as software": software} {
		for _, mode := range []runtime.SubgroupMode{runtime.SubgroupsOff, runtime.SubgroupsOn} {
			d := open(b, runtime.Config{Subgroups: mode}, kind)
			if mode == runtime.SubgroupsOn && !strings.Contains(d.Caps().Description, "subgroups of") {
				continue
			}
			kernels := rowsByOne("float32")
			kernels["softmax"], kernels["norm"] = rowtext.Softmax, rowtext.Norm
			for _, op := range []string{"sum", "max", "argmax", "cumsum", "cummax", "softmax", "norm"} {
				for _, n := range []int64{256, 1024, 8192} {
					b.Run(fmt.Sprintf("%s/%s/%d/%s", op, name, n, []string{"subgroups", "without"}[mode]), func(b *testing.B) {
						x := newTrial(parse(b, kernels[op]), 1, 1<<22/n, n)
						x.fillInputs(rand.New(rand.NewPCG(5, 6)))
						x.allScalars(float32(n))
						l := x.warm(b, d)
						for b.Loop() {
							must(b, runAndWait(d, []runtime.Launch{*l}))
						}
					})
				}
			}
		}
	}
}
