package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/runtime"
)

// lay changes the layout of input i of h: order lists the dims by the distance of their elements,
// the nearest last. Elements are step apart; some dims run backwards.
func lay(rng *rand.Rand, k *codegen.Kernel, h *kernels.Launch, i int, order []int, step int64) {
	a, size := &h.Args[i], int64(k.Operands[i].DT.Size())
	n, offset := step, int64(3)
	for p := len(order) - 1; p >= 0; p-- {
		d := order[p]
		a.Access.Stride[d] = n
		if rng.IntN(4) == 0 {
			a.Access.Stride[d] = -n
			offset += n * (h.Dims[d] - 1)
		}
		n *= h.Dims[d]
	}
	a.Access.Offset = offset
	data := make([]byte, (n+8)*size)
	for at := 0; at < len(data); at += len(a.Data) {
		copy(data[at:], a.Data)
	}
	a.Data = data
}

// TestTransposed compares launches with operands whose neighbours are along other dims with the
// oracle: with transposed tiles and, for few points, without.
func TestTransposed(t *testing.T) {
	elementwise := map[string]string{
		"float32": "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = sub %0 %1 : float32\nstore 2 %2\n",
		"bytes":   "in 0 : uint8\nin 1 : bool\nout 2 : uint8\n%0 = load 0 : uint8\n%1 = load 1 : bool\n%2 = cast %1 : uint8\n%3 = add %0 %2 : uint8\nstore 2 %3\n",
		"halves":  "in 0 : float16\nin 1 : int16\nout 2 : float16\n%0 = load 0 : float16\n%1 = load 1 : int16\n%2 = cast %1 : float16\n%3 = mul %0 %2 : float16\nstore 2 %3\n",
		"places":  "in 0 : float64\nindex 1\nout 2 : float64\nout 3 : int64\n%0 = load 0 : float64\n%1 = indexlo 1 : uint32\n%2 = cast %1 : int64\n%3 = cast %1 : float64\n%4 = add %0 %3 : float64\nstore 2 %4\nstore 3 %2\n",
	}
	type shape struct {
		dims []int64
		kept int
	}
	points := []shape{
		{[]int64{64, 64}, 2}, {[]int64{37, 200}, 2}, {[]int64{300, 70}, 2}, {[]int64{2, 33, 65}, 3}, {[]int64{40, 3, 50}, 3},
		{[]int64{900, 3}, 2}, {[]int64{3, 900}, 2}, {[]int64{17, 2, 5, 31}, 4}, {[]int64{2, 2}, 2}, {[]int64{4100, 2}, 2},
	}
	rows := []shape{
		{[]int64{70, 64}, 1}, {[]int64{33, 130}, 1}, {[]int64{3, 40, 70}, 2}, {[]int64{3, 40, 70}, 1}, {[]int64{20, 7, 4, 30}, 2}, {[]int64{18, 4200}, 1}, {[]int64{5, 3}, 1},
	}
	ds := map[string]*device{
		"tier 0": openTest(t, runtime.Config{Tier: -1, Threads: 3}), "tier 1": openTest(t, runtime.Config{Tier: 1, Threads: 2}),
		"go": openTest(t, runtime.Config{Tier: -1, Threads: 2}),
	}
	seen := map[bool]int{} // launches with transposed operands, with rows and without
	each := func(name string, k *codegen.Kernel, shapes []shape, compiled bool) {
		for n, s := range shapes {
			rng := rand.New(rand.NewPCG(7, uint64(n)))
			h := kernels.NewLaunch(rng, k, s.dims, s.kept, kernels.Dense)
			for i, o := range k.Operands {
				if o.Kind != codegen.Input || o.Row {
					continue
				}
				order := rng.Perm(len(s.dims))
				if i == 0 { // the innermost dim just before the one that it is transposed with
					order = append(rng.Perm(s.kept-1), len(s.dims)-1)
					for d := s.kept; d < len(s.dims)-1; d++ {
						order = append(order, d)
					}
					order = append(order, s.kept-1)
					if s.kept == len(s.dims) {
						order = append([]int{s.kept - 1}, rng.Perm(s.kept-1)...)
					}
				}
				lay(rng, k, h, i, order, 1+int64(rng.IntN(4)/3))
			}
			want := reference(t, k, h)
			for on, d := range ds {
				if on == "tier 1" && !compiled && !thorough {
					continue
				}
				bound(t, d, k, h, func(l *runtime.Launch) {
					r, err := d.prepareFor(l, d.threadsOf())
					if err != nil {
						t.Fatal(err)
					}
					if r.transposed.ops != 0 {
						seen[k.HasRows()]++
					}
					if err := d.Run([]runtime.Launch{*l}); err != nil {
						t.Fatal(err)
					}
					compare(t, fmt.Sprintf("%s, %s, %v, %d kept", on, name, s.dims, s.kept), k, contents(t, d, k, h, l), want)
				})
				if t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	for name, text := range elementwise {
		each(name, rowKernel(t, text), points, name == "float32")
	}
	for _, name := range []string{"softmax", "norm"} {
		each(name, rowKernel(t, rowtext.All[name]), rows, name == "softmax")
	}
	if seen[true] < 3 || seen[false] < 10 {
		t.Errorf("transposed by themselves: %d launches with rows, %d others", seen[true], seen[false])
	}
}

// TestNotTransposed checks that operands behind a guard or an index are not transposed, and that
// nothing is if only some points of a dim store a result.
func TestNotTransposed(t *testing.T) {
	d := openTest(t, runtime.Config{Tier: -1, Threads: 1})
	check := func(what, text string, change func(h *kernels.Launch)) {
		k := rowKernel(t, text)
		rng := rand.New(rand.NewPCG(8, 8))
		h := kernels.NewLaunch(rng, k, []int64{70, 80}, 2, kernels.Dense)
		for i, o := range k.Operands {
			if o.Kind == codegen.Input {
				lay(rng, k, h, i, []int{1, 0}, 1)
			}
		}
		change(h)
		bound(t, d, k, h, func(l *runtime.Launch) {
			if r, err := d.prepareFor(l, d.threadsOf()); err != nil || r.transposed.ops != 0 {
				t.Errorf("%s: operands %b are transposed, %v", what, r.transposed.ops, err)
			}
		})
	}
	const plain = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0\n"
	check("guarded", "in 0 : float32\nindex 1\nout 2 : float32\n%0 = indexlo 1 : uint32\n%1 = const 0x9 : uint32\n%2 = lt %0 %1 : bool\n%3 = load 0 %2 : float32\nstore 2 %3\n",
		func(*kernels.Launch) {})
	check("stored once", plain, func(h *kernels.Launch) { h.Args[1].Access.Stride[0] = 0 })
	check("a view of stages", plain, func(h *kernels.Launch) {
		h.Args[0].Access.Stages = []runtime.Stage{{Dims: []int64{5608}, Stride: []int64{1}}}
	})
	check("dense", plain, func(h *kernels.Launch) { h.Args[0].Access = h.Args[1].Access })
}
