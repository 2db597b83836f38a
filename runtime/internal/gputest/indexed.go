package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Kernels that look up a table, operand 1, at indices, operand 0.
const (
	lookKernel = "in 0 : int32\nin 1 : DT\nout 2 : DT\n%0 = load 0 : int32\n%1 = loadat 1 MODE %0 : DT\nstore 2 %1"
	// Indices and guards are computed.
	lookGuarded = "in 0 : int32\nin 1 : DT\nout 2 : DT\n%0 = load 0 : int32\n%1 = const 3 : int32\n%2 = ne %0 %1 : bool\n" +
		"%3 = loadat 1 MODE %0 %2 : DT\nstore 2 %3"
	lookSum = "in 0 : int32\nin 1 : float32\nout 2 : float32 row\n%0 = load 0 : int32\n%1 = loadat 1 MODE %0 : float32\n" +
		"%2 = mul %1 %1 : float32\n%3 = sum %2 : float32\nstore 2 %3"
	lookSoftmax = "in 0 : int32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : int32\n%1 = loadat 1 MODE %0 : float32\n" +
		"%2 = max %1 : float32\n%3 = sub %1 %2 : float32\n%4 = exp %3 : float32\n%5 = sum %4 : float32\n%6 = div %4 %5 : float32\nstore 2 %6"
	lookDot = "in 0 : int32\nin 1 : float32\nin 2 : float32\nout 3 : float32 row\n%0 = load 0 : int32\n%1 = loadat 1 MODE %0 : float32\n" +
		"%2 = load 2 : float32\n%3 = dot %1 %2 : float32\nstore 3 %3"
)

// lookUp is a trial whose indices advance by at, and whose table has size elements along the axis,
// step apart, at the domain's points by stride.
func lookUp(t testing.TB, src, mode string, dt ir.DType, kept int, dims, at, stride []int64, size, step int64) *trial {
	t.Helper()
	src = strings.NewReplacer("MODE", mode, "DT", dt.String()).Replace(src)
	x := newTrial(parse(t, src), kept, dims...)
	lay := func(operand int, stride []int64, extra int64) {
		a := &x.args[operand]
		n := extra
		for d, st := range stride {
			a.Stride[d] = st
			n += max(st, -st) * (dims[d] - 1)
			if st < 0 {
				a.Offset -= st * (dims[d] - 1)
			}
		}
		a.Data = make([]byte, max(n, 0)*int64(x.k.Operands[operand].DT.Size()))
	}
	lay(0, at, 1)
	reach := max(step, -step)*(size-1) + 1
	if size == 0 {
		reach = 0
	}
	lay(1, stride, reach)
	if step < 0 {
		x.args[1].Offset -= step * (size - 1)
	}
	x.args[1].IndexStride, x.args[1].IndexSize = step, size
	rng := rand.New(rand.NewPCG(7, uint64(size)))
	x.fillInputs(rng)
	for i := 0; i < len(x.args[0].Data); i += 4 {
		v := rng.Int64N(size + 4)
		if mode == "error" && size > 0 {
			v = rng.Int64N(size)
		} else if v -= 2; rng.IntN(20) == 0 {
			v = []int64{-1 << 31, 1<<31 - 1, 1 << 30}[rng.IntN(3)]
		}
		binary.LittleEndian.PutUint32(x.args[0].Data[i:], uint32(v))
	}
	return x
}

// testIndexedLoads compares loads through an index with the interpreter, in every mode and by lanes
// and whole vectors, also for tables that exceed a binding.
func testIndexedLoads(t *testing.T) {
	whole := openDevice(t, runtime.Config{})
	cut := openAs(t, func(i *gpurun.Info) {
		small(i)
		if i.Limits.StorageBuffers < 32 { // a table takes many of them
			i.Limits.Binding *= 2
		}
	})
	type list = []int64
	for _, c := range []struct {
		name             string
		src              string
		kept             int
		dims, at, stride list
		size, step       int64
	}{
		{"elements", lookKernel, 1, list{1000}, list{1}, list{0}, 300, 1},
		{"a few", lookKernel, 1, list{3}, list{1}, list{0}, 300, 1},
		{"one after a vector", lookKernel, 1, list{5}, list{1}, list{0}, 7, 3},
		{"rows", lookKernel, 2, list{37, 64}, list{1, 0}, list{0, 1}, 50, 64},
		{"odd rows", lookKernel, 2, list{37, 7}, list{1, 0}, list{0, 1}, 50, 7},
		{"rows from behind", lookKernel, 2, list{37, 64}, list{1, 0}, list{0, 1}, 50, -64},
		{"columns", lookKernel, 2, list{16, 20}, list{0, 1}, list{50, 0}, 50, 1},
		{"along", lookKernel, 2, list{16, 20}, list{20, 1}, list{50, 0}, 50, 1},
		{"along, turned around", lookKernel, 2, list{16, 20}, list{20, 1}, list{-50, 0}, 50, -1},
		{"an empty table", lookKernel, 2, list{16, 20}, list{20, 1}, list{0, 0}, 0, 1},
		{"guarded", lookGuarded, 1, list{1001}, list{1}, list{0}, 8, 1},
		{"guarded rows", lookGuarded, 2, list{16, 20}, list{1, 0}, list{0, 1}, 8, 20},
		{"a sum", lookSum, 1, list{70, 100}, list{100, 1}, list{0, 0}, 64, 1},
		{"a sum of many", lookSum, 0, list{40000}, list{1}, list{0}, 64, 1},
		{"softmax of rows", lookSoftmax, 1, list{70, 128}, list{1, 0}, list{0, 1}, 64, 128},
		{"softmax", lookSoftmax, 1, list{70, 100}, list{100, 1}, list{0, 0}, 64, 1},
		{"dot", lookDot, 2, list{40, 24, 50}, list{1, 0, 0}, list{0, 0, 1}, 64, 50},
	} {
		for _, mode := range []string{"error", "clamp", "drop"} {
			if c.size == 0 && mode != "drop" {
				continue
			}
			for i, dt := range []ir.DType{ir.Float32, ir.Bool, ir.Int8, ir.BFloat16, ir.Uint32} {
				if i > 0 && (mode != "drop" || c.name != "elements" && c.name != "rows") {
					break
				}
				for name, d := range map[string]*device{"": whole, "/small": cut} {
					if name != "" && (c.src == lookSoftmax || i > 0) {
						continue // limits cut these like kernels without an index
					}
					t.Run(fmt.Sprintf("%s/%s/%v%s", c.name, mode, dt, name), func(t *testing.T) {
						x := lookUp(t, c.src, mode, dt, c.kept, c.dims, c.at, c.stride, c.size, c.step)
						if c.src == lookDot {
							x.args[2].Stride = [runtime.MaxRank]int64{0, 50, 1}
							x.args[2].Data = x.args[2].Data[:24*50*4]
						}
						x.check(t, d, ir.Tolerance{Abs: 1e-4, Rel: 1e-4})
					})
				}
			}
		}
	}
	if n := whole.Stats().Waits; n == 0 {
		t.Error("nothing waited to learn of faults")
	}
}

// testIndexedRowsMoveByVectors: looking up whole rows loads vectors.
func testIndexedRowsMoveByVectors(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	x := lookUp(t, lookKernel, "clamp", ir.Float32, 2, []int64{37, 64}, []int64{1, 0}, []int64{0, 1}, 50, 64)
	l := x.check(t, d, ir.Tolerance{})
	if s := sources(d, l); !strings.Contains(s, under.Dialect.Types["vec4f32"]) {
		t.Errorf("the table is read element by element:\n%s", s)
	}
	if n := d.Stats().Waits; n != 0 {
		t.Errorf("%d waits, though no index can be a fault", n)
	}
}

// testIndexFaults: an index out of range fails its launch and the error names the smallest such
// index; earlier launches have run. Vectors that go past the domain do not check the elements
// there.
func testIndexFaults(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	for _, c := range []struct {
		name string
		src  string
		n    int64
		size int64
		bad  map[int]int32
		want string // "" for none
	}{
		{"none", lookKernel, 5, 300, nil, ""},
		{"above", lookKernel, 1000, 300, map[int]int32{999: 300}, "index 300, but the axis has 300"},
		{"the least", lookKernel, 1000, 300, map[int]int32{3: 300, 70: -7, 500: 1<<31 - 1}, "index -7,"},
		{"the greatest of all", lookKernel, 9, 300, map[int]int32{8: 1<<31 - 1}, "index 2147483647,"},
		{"the least of all", lookKernel, 9, 300, map[int]int32{0: -1 << 31}, "index -2147483648,"},
		{"an empty table", lookKernel, 9, 0, nil, "but the axis has 0"},
		{"under a guard", lookGuarded, 9, 3, map[int]int32{2: 3}, ""},
		{"under another", lookGuarded, 9, 3, map[int]int32{2: 4}, "index 4,"},
		{"in a row", lookSum, 1000, 300, map[int]int32{999: 301}, "index 301,"},
		{"in a long row", lookSum, 40000, 300, map[int]int32{39999: 301}, "index 301,"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := newTrial(parse(t, copyKernel), 1, 100)
			before.fillInputs(rand.New(rand.NewPCG(1, 2)))
			first := before.launch(t, d)
			kept := 1
			if c.src == lookSum {
				kept = 0
			}
			x := lookUp(t, c.src, "error", ir.Float32, kept, []int64{c.n}, []int64{1}, []int64{0}, c.size, 1)
			for at, v := range c.bad {
				binary.LittleEndian.PutUint32(x.args[0].Data[4*at:], uint32(v))
			}
			// After the last index is one that would be a fault.
			x.args[0].Data = append(x.args[0].Data, 0xff, 0xff, 0xff, 0x7f)
			l := x.launch(t, d)
			err := d.Run([]runtime.Launch{*first, *l, *first})
			if c.want == "" {
				must(t, err)
				x.compare(t, d, l, ir.Tolerance{Abs: 1e-4, Rel: 1e-4})
				return
			}
			var le *runtime.LaunchError
			if !errors.As(err, &le) || le.Index != 1 || !errors.Is(err, ir.ErrIndex) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want ErrIndex of launch 1 with %q", err, c.want)
			}
			before.compare(t, d, first, ir.Tolerance{})
		})
	}
}

// testFaultKeepsOperands: a launch that would overwrite operands of a failing one, or its own
// operands, does not run. A launch that overwrites no operands needs no extra wait.
func testFaultKeepsOperands(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	x := lookUp(t, lookKernel, "error", ir.Int32, 1, []int64{8}, []int64{1}, []int64{0}, 300, 1)
	binary.LittleEndian.PutUint32(x.args[0].Data, 300)
	look := x.launch(t, d)
	y := newTrial(parse(t, "in 0 : int32\nout 1 : int32\n%0 = load 0 : int32\n%1 = add %0 %0 : int32\nstore 1 %1"), 1, 8)
	y.fillInputs(rand.New(rand.NewPCG(1, 2)))
	double := y.launch(t, d)
	elsewhere := *double
	inPlace, onto := *double, *double
	inPlace.Args = []runtime.Access{double.Args[0], double.Args[0]}
	onto.Args = []runtime.Access{double.Args[0], look.Args[0]}
	read := func(buf runtime.Buffer) string {
		data := make([]byte, 8*4)
		must(t, d.Read(data, ir.Int32, buf, 0))
		return string(data)
	}
	for name, later := range map[string]runtime.Launch{"in place": inPlace, "onto the indices": onto} {
		was := read(later.Args[1].Buf)
		waits := d.Stats().Waits
		if err := d.Run([]runtime.Launch{*look, elsewhere, later}); !errors.Is(err, ir.ErrIndex) {
			t.Errorf("%s: %v, want ErrIndex", name, err)
		}
		if read(later.Args[1].Buf) != was {
			t.Errorf("%s: the launch after the one at fault has run", name)
		}
		if n := d.Stats().Waits - waits; n != 1 {
			t.Errorf("%s: %d waits, want 1", name, n)
		}
	}
	binary.LittleEndian.PutUint32(x.args[0].Data, 299)
	must(t, d.Write(look.Args[0].Buf, ir.Int32, 0, x.args[0].Data))
	waits := d.Stats().Waits
	must(t, d.Run([]runtime.Launch{*look, elsewhere, *look, elsewhere}))
	if n := d.Stats().Waits - waits; n != 1 {
		t.Errorf("%d waits, want 1", n)
	}
	x.compare(t, d, look, ir.Tolerance{})
	must(t, d.Run([]runtime.Launch{*look, inPlace}))
}
