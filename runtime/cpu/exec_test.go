package cpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/procs"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
)

// goLaunches returns kernels, with sizes for which the executor walks them in each of its ways.
func goLaunches(t *testing.T) (list []goLaunch) {
	add := waveKernels()[0]
	list = append(list, goLaunch{"elementwise", add, []int64{300, 500}, 2, nil}, goLaunch{"transposed", add, []int64{300, 400}, 2, func(h *kernels.Launch) { transpose(h, 0, 1) }})
	for name, text := range rowtext.All {
		k := rowKernel(t, text)
		for _, dims := range [][]int64{{200, 300}, {2, 20000}, {30, 5000}} {
			columns := func(h *kernels.Launch) {
				for i := range h.Args {
					transpose(h, i, 1)
				}
			}
			list = append(list, goLaunch{name, k, dims, 1, nil}, goLaunch{name + ", columns", k, dims, 1, columns})
		}
	}
	return list
}

type goLaunch struct {
	name   string
	kernel *codegen.Kernel
	dims   []int64
	kept   int
	change func(h *kernels.Launch)
}

// TestGoAllocates checks that launches allocate nothing from Go's heap after the first few of
// their kind.
func TestGoAllocates(t *testing.T) {
	procs.Use(t, 2)
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	e := newExecutor(2, nil, contract.Source{})
	defer e.close()
	ways := map[string]bool{}
	for _, x := range goLaunches(t) {
		if testing.Short() && x.dims[1] > 1000 {
			continue
		}
		h := kernels.NewLaunch(rand.New(rand.NewPCG(17, 3)), x.kernel, x.dims, x.kept, kernels.Dense)
		if x.change != nil {
			x.change(h)
		}
		bound(t, d, x.kernel, h, func(l *runtime.Launch) {
			r, err := d.prepareFor(l, 2)
			if err != nil {
				t.Fatal(err)
			}
			ways[fmt.Sprint(r.mode, r.split, r.transposed.ops != 0)] = true
			one := []ready{r}
			if n := procs.Allocations(func() {
				if err := e.run(one); err != nil {
					t.Fatal(err)
				}
			}); n > 0.5 {
				t.Errorf("%s of %v: %v allocations", x.name, x.dims, n)
			}
		})
	}
	if len(ways) < 4 {
		t.Errorf("launches were walked in these ways only: %v", ways)
	}
}

// TestGoWave checks that independent launches run in parallel, in the memory of their threads, and
// also allocate nothing from Go's heap.
func TestGoWave(t *testing.T) {
	procs.Use(t, 3)
	d := openTest(t, runtime.Config{Tier: -1, Threads: 3})
	const n, launches = 70, 24
	alloc := func() runtime.Buffer {
		b, err := d.Alloc(n * n * 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Free(b) })
		return b
	}
	x, y := alloc(), alloc()
	data := make([]byte, n*n*4)
	rng := rand.New(rand.NewPCG(17, 4))
	for i := range data {
		if data[i] = byte(rng.IntN(256)); i%4 == 3 {
			data[i] = byte(62 + 128*rng.IntN(2))
		}
	}
	for _, b := range []runtime.Buffer{x, y} {
		if err := d.Write(b, ir.Float32, 0, data); err != nil {
			t.Fatal(err)
		}
	}
	outs := make([]runtime.Buffer, launches)
	list := make([]runtime.Launch, launches)
	for i := range list {
		which := i % 2 // elementwise, or of rows
		p, err := d.Build(waveKernels()[which])
		if err != nil {
			t.Fatal(err)
		}
		outs[i] = alloc()
		list[i] = waveLaunch(p, which, n, x, y, outs[i])
	}
	e := newExecutor(3, nil, contract.Source{})
	defer e.close()
	readied := make([]ready, launches)
	for i := range list {
		r, err := d.prepareFor(&list[i], 1)
		if err != nil {
			t.Fatal(err)
		}
		readied[i] = r
	}
	result := func(b runtime.Buffer) []byte {
		got := make([]byte, n*n*4)
		if err := d.Read(got, ir.Float32, b, 0); err != nil {
			t.Fatal(err)
		}
		return got
	}
	run := func() {
		if err := e.run(readied); err != nil {
			t.Fatal(err)
		}
	}
	run() // one after another
	var want [][]byte
	for _, b := range outs {
		want = append(want, result(b))
		if err := d.Write(b, ir.Float32, 0, data); err != nil {
			t.Fatal(err)
		}
	}
	for i := range readied {
		readied[i].wave = 1
	}
	run()
	for _, in := range e.inner { // each thread must have run both kinds before
		for i := range readied {
			if err := in.one(&readied[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Less than one each time: if all processors are busy, the scheduler allocates for sleeping
	// threads.
	if got := procs.Allocations(run); got >= 1 {
		t.Errorf("%v allocations for a wave", got)
	}
	for i, b := range outs {
		if !bytes.Equal(result(b), want[i]) {
			t.Errorf("launch %d of a wave leaves other results", i)
		}
	}
	if len(e.inner) != 3 || e.pool.Started() != 3 {
		t.Errorf("the wave ran on %d threads, for whose launches there is memory of %d", e.pool.Started(), len(e.inner))
	}
}
