//go:build cgo && unix

package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// noteCase is a kernel and a launch of it.
type noteCase struct {
	name string
	k    *codegen.Kernel
	h    *kernels.Launch
}

// noteCases returns every form of kernel.
func noteCases(t *testing.T) (list []noteCase) {
	t.Helper()
	add := func(name string, k *codegen.Kernel, h *kernels.Launch) { list = append(list, noteCase{name, k, h}) }
	for how := range kernels.NumPatterns {
		k := scaled(t)
		add(fmt.Sprint("pattern ", how), k, kernels.NewLaunch(rand.New(rand.NewPCG(2, uint64(how))), k, []int64{5, 40}, 2, how))
	}
	for i, dt := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.Uint8} {
		for half := range ir.Op(2) {
			if !thorough && (ir.Op(i)&1 == half || i > 2 || testing.Short()) {
				continue // the compiler takes seconds for each
			}
			k := kernels.EveryOp(dt, func(op ir.Op, out ir.DType) bool {
				return op&1 == half && (!dt.Storage() || kernels.StorageOps(op, out))
			})
			add(fmt.Sprint("ops on ", dt), k, kernels.NewLaunch(rand.New(rand.NewPCG(1, uint64(dt))), k, []int64{3, 37}, 2, kernels.Dense))
		}
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(8, seed))
		k := kernels.Random(rng, 12+rng.IntN(24), rng.IntN(5))
		dims := []int64{1 + rng.Int64N(6), 1 + rng.Int64N(50), 1 + rng.Int64N(40)}
		kept := len(dims)
		if k.HasRows() {
			kept = rng.IntN(3)
		}
		add(fmt.Sprint("seed ", seed), k, kernels.NewLaunch(rng, k, dims, kept, kernels.Pattern(rng.IntN(int(kernels.NumPatterns)))))
	}
	long := kernels.Random(rand.New(rand.NewPCG(8, 77)), 30, 4) // rows that fit in no cache
	add("long rows", long, kernels.NewLaunch(rand.New(rand.NewPCG(8, 77)), long, []int64{2, 300000}, 1, kernels.Dense))
	around := rowKernel(t, dotKernels["around"])
	for _, c := range dotCases[:3] {
		add("contraction, "+c.name, around, dotCase(around, c.dims, dotSizes[1], c.left, c.right, c.bias, c.residual, c.result))
	}
	for _, c := range []scatterCase{
		{n: 5000, v: 7, dt: ir.Float32, index: ir.Int32, how: ir.CombineAdd, made: true},
		{kept: []int64{40}, n: 500, v: 60, axis: 1, dt: ir.Int64, index: ir.Int64, how: ir.CombineMax},
	} {
		add("scatter", c.kernel(), c.launch(rand.New(rand.NewPCG(3, 3))))
	}
	return list
}

// noted runs kernels on a device that notes them, and returns its notes.
func noted(t *testing.T, mode runtime.CompileMode, list []noteCase) (texts []string) {
	t.Helper()
	cache := &mapCache{entries: map[string][]byte{}}
	d := opened(t, runtime.Config{Compile: mode, Threads: 2, Cache: cache})
	for i := range list {
		hold(t, d, list[i].k) // notes cover live programs only
		onDevice(t, d, list[i].k, list[i].h)
	}
	if err := d.Wait(true); err != nil {
		t.Fatal(err)
	}
	for key := range cache.entries {
		text, ok := strings.CutPrefix(key, KindKernel+" ")
		if !ok {
			t.Errorf("without a compiler the cache was given %.30q", key)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	if told := slices.Sorted(slices.Values(d.noteTexts())); !slices.Equal(texts, told) {
		t.Errorf("%d notes in the cache, %d told", len(texts), len(told))
	}
	return texts
}

// TestNotesOfKernels checks that every kernel that ran is noted, whether code was made of it or
// not, and that the note is read again as that kernel.
func TestNotesOfKernels(t *testing.T) {
	list := noteCases(t)
	all := noted(t, runtime.CompileBackground, list)
	for _, text := range noted(t, runtime.CompileOff, list) {
		if _, ok := slices.BinarySearch(all, text); !ok {
			t.Errorf("not noted: %s", text)
		}
		if n, err := ParseNote(text); err != nil || !strings.HasSuffix(text, "\n"+n.Kernel.String()) {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// TestNotes checks that invalid notes are refused, each with a reason.
func TestNotes(t *testing.T) {
	good := noted(t, runtime.CompileOff, noteCases(t)[:1])[0]
	layout, kernel, _ := strings.Cut(strings.TrimPrefix(good, noteScope+"\n"), "\n")
	bad := []string{"", noteScope, noteScope + "\n", "ccc", layout, layout + "\n", layout + "\nrubbish", layout + "\n" + kernel + "\n", "ccc\n" + kernel, "c/c/c\n" + kernel, "cx/cc/cc\n" + kernel,
		layout + " thin cols\n" + kernel, layout + " thick\n" + kernel, " " + good}
	for i := range bad {
		if i > 4 {
			bad[i] = noteScope + "\n" + bad[i]
		}
	}
	bad = append(bad, good[1:], strings.Replace(good, "device=cpu", "device=webgpu", 1))
	if _, err := ParseNote(good); err != nil {
		t.Error(err)
	}
	for _, text := range bad {
		if n, err := ParseNote(text); err == nil {
			t.Errorf("%q was read as %+v", text, n)
		}
	}
}

// TestLayoutText checks that the text of a layout contains everything that distinguishes variants.
func TestLayoutText(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		var k classKey
		n := rng.IntN(maxOperands + 1)
		for i := range n {
			for _, to := range []*[maxOperands / 32]uint64{&k.points, &k.rows, &k.second} {
				setClass(to, i, codegen.AccessClass(rng.IntN(int(codegen.NumAccesses))))
			}
		}
		for _, f := range k.flags() {
			*f = rng.IntN(2) == 0
		}
		thin := rng.IntN(2) == 0
		text := k.layout(n, thin)
		got, gotThin, err := parseLayout(text, n)
		if err != nil || got != k || gotThin != thin {
			t.Fatalf("%q: %+v %v %v, want %+v %v", text, got, gotThin, err, k, thin)
		}
	}
}
