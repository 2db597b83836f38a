package cpu

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/internal/testing/rowtext"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// keeping returns a device that records launches, with machine code for everything.
func keeping(t *testing.T, threads int) *device {
	t.Helper()
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	d := openTest(t, runtime.Config{Compile: runtime.CompileWait, Threads: threads})
	if !d.machine {
		t.Skip("kernels become C here")
	}
	return d
}

// keptCase is a launch that should be recorded.
type keptCase struct {
	k *codegen.Kernel
	h *kernels.Launch
}

// keptCases returns launches for every kind of walker.
func keptCases(t *testing.T) map[string]keptCase {
	rng := rand.New(rand.NewPCG(7, 1))
	dots := map[string]dotLayout{"rows by columns": {"ik", "kj"}, "rows by rows": {"ik", "jk"}, "columns by columns": {"ki", "kj"}}
	cases := map[string]keptCase{
		"points": {scaled(t), kernels.NewLaunch(rng, scaled(t), []int64{7, 300}, 2, kernels.Dense)},
	}
	apart := keptCase{scaled(t), kernels.NewLaunch(rng, scaled(t), []int64{5, 6, 80}, 3, kernels.Dense)}
	apart.h.Args[0].Stride[0], apart.h.Args[0].Stride[1] = 80, 400 // several calls with equal frames
	cases["points in another order"] = apart
	for name, text := range rowtext.All {
		if k := rowKernel(t, text); keepsRows(k) {
			cases[name] = keptCase{k, kernels.NewLaunch(rng, k, []int64{5, 60}, 1, kernels.Dense)}
		}
	}
	for name, sides := range dots {
		for what, size := range map[string][3]int64{"one row": {1, 27, 40}, "few rows": {6, 33, 20}, "many rows": {40, 70, 50}} {
			k := plainDot()
			cases["product of "+name+", "+what] = keptCase{k, sides.launch(rng, k, size)}
		}
	}
	for name, c := range map[string]scatterCase{
		"scatter of columns": {kept: []int64{30}, n: 12, v: 9, same: true, apart: 1, dt: ir.Float32, index: ir.Int32, mode: ir.IndexError, how: ir.CombineAdd},
		"scatter of rows":    {kept: []int64{3}, n: 12, v: 9, apart: 1, dt: ir.Float32, index: ir.Int64, mode: ir.IndexClamp, how: ir.CombineSet},
	} {
		cases[name] = keptCase{c.kernel(), c.launch(rng)}
	}
	return cases
}

// keepsRows reports that the folds of a kernel are on plain numbers of their own dtype: other
// kernels are walked.
func keepsRows(k *codegen.Kernel) bool {
	for _, in := range k.Body {
		if c := in.Op.Info().Class; c == ir.ClassSort || c == ir.ClassScan || in.DT.Storage() {
			return false
		}
	}
	return true
}

// plainDot returns a kernel that multiplies two matrices of floats.
func plainDot() *codegen.Kernel {
	var b ir.Builder
	x, y := b.Emit(ir.Load, ir.Float32, 0), b.Emit(ir.Load, ir.Float32, 1)
	v := b.Emit(ir.Dot, ir.Float32, 0, x, y)
	return &codegen.Kernel{Body: b.Code, Stores: []codegen.Store{{Operand: 2, Value: v}}, Operands: []codegen.Operand{
		{Kind: codegen.Input, DT: ir.Float32}, {Kind: codegen.Input, DT: ir.Float32}, {Kind: codegen.Output, DT: ir.Float32, Row: true}}}
}

// dotLayout is the order of the dims of either side in memory, the last one innermost.
type dotLayout [2]string

func (s dotLayout) launch(rng *rand.Rand, k *codegen.Kernel, size [3]int64) *kernels.Launch {
	h := kernels.NewLaunch(rng, k, size[:], 2, kernels.Dense)
	for i, dims := range append(s[:], "ij") {
		step := int64(1)
		h.Args[i].Stride = [runtime.MaxRank]int64{}
		h.Args[i].Offset = 0
		for at := len(dims) - 1; at >= 0; at-- {
			d := map[byte]int{'i': 0, 'j': 1, 'k': 2}[dims[at]]
			h.Args[i].Stride[d] = step
			step *= size[d]
		}
	}
	return h
}

// preparedList prepares launches to be run one by one, even if they could be one function.
func preparedList(d *device, list ...runtime.Launch) *prepared {
	p := &prepared{d: d}
	p.prepare(list)
	return p
}

// TestKept checks that small launches of every kind are recorded, and give the oracle's bits at
// every address of their operands.
func TestKept(t *testing.T) {
	for _, threads := range []int{1, 2} {
		d := keeping(t, threads)
		for name, c := range keptCases(t) {
			hold(t, d, c.k)
			onDevice(t, d, c.k, c.h) // makes code
			was := keptRuns.Load()
			again(t, d, c.k, c.h, reference(t, c.k, c.h))
			if n := keptRuns.Load() - was; n != 2 {
				t.Errorf("%s: %d of 2 runs were as the first one", name, n)
			}
		}
		if n := d.kept.Bytes.Load(); n != 0 {
			t.Errorf("%d bytes are kept of lists that are closed", n)
		}
	}
}

// TestKeptBound checks that recordings are bounded, and that launches beyond the bound are walked.
func TestKeptBound(t *testing.T) {
	d := keeping(t, 1)
	k := scaled(t)
	h := kernels.NewLaunch(rand.New(rand.NewPCG(7, 2)), k, []int64{90}, 1, kernels.Dense)
	var list []*prepared
	hold(t, d, k)
	onDevice(t, d, k, h)
	bound(t, d, k, h, func(l *runtime.Launch) {
		for range 8 {
			p := preparedList(d, *l, *l)
			if len(p.list) == 0 {
				t.Fatal("not prepared")
			}
			list = append(list, p)
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			if d.kept.Most == keptBytesAll {
				d.kept.Most = 7 * d.kept.Bytes.Load() / 2 // three lists and one launch more
			}
		}
		kept := int64(0)
		for _, p := range list {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			for _, k := range p.kept {
				kept += k.Runs()
			}
		}
		if n := d.kept.Bytes.Load(); kept != 7 || n > d.kept.Most {
			t.Errorf("%d launches are kept, %d bytes of %d", kept, n, d.kept.Most)
		}
		for _, p := range list {
			p.Close()
		}
		if n := d.kept.Bytes.Load(); n != 0 {
			t.Errorf("%d bytes are kept of lists that are closed", n)
		}
	})
}

// TestKeptFaults checks that a recorded launch handles an index out of range as others do: the
// launches after it do not run, its output does not change, and the next run works.
func TestKeptFaults(t *testing.T) {
	d := keeping(t, 1)
	c := scatterCase{kept: []int64{30}, n: 12, v: 9, same: true, apart: 1, dt: ir.Float32, index: ir.Int32, mode: ir.IndexError, how: ir.CombineAdd}
	k, h := c.kernel(), c.launch(rand.New(rand.NewPCG(7, 3)))
	copied := scaled(t)
	want := reference(t, k, h)
	hold(t, d, k)
	onDevice(t, d, k, h)
	bound(t, d, k, h, func(l *runtime.Launch) {
		prog, err := d.Build(copied)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Free(out)
		after := runtime.Launch{Prog: prog, Rank: 1, Kept: 1, Scalars: []uint64{ir.FloatBits(ir.Float32, 2)}}
		after.Args = []runtime.Access{{Buf: l.Args[3].Buf}, {Buf: out}}
		after.Dims[0], after.Args[0].Stride[0], after.Args[1].Stride[0] = 9, 1, 1
		if err := d.Run([]runtime.Launch{*l, after}); err != nil { // makes code
			t.Fatal(err)
		}
		p := preparedList(d, *l, after)
		if len(p.list) == 0 {
			t.Fatal("not prepared")
		}
		defer p.Close()
		good := h.Args[1].Data
		bad := make([]byte, len(good))
		copy(bad, good)
		bad[4], bad[5] = 77, 1
		for run, index := range [][]byte{bad, good, good, bad, bad, good} {
			if err := errors.Join(d.Write(l.Args[1].Buf, ir.Int32, 0, index), d.Write(l.Args[3].Buf, ir.Float32, 0, h.Args[3].Data),
				d.Write(out, ir.Float32, 0, make([]byte, 36))); err != nil {
				t.Fatal(err)
			}
			err := p.Run()
			var at *runtime.LaunchError
			if faults := run == 0 || run == 3 || run == 4; faults != (err != nil) || faults && (!errors.As(err, &at) || at.Index != 0 || !errors.Is(err, ir.ErrIndex)) {
				t.Fatalf("run %d: %v", run, err)
			}
			got, second := contents(t, d, k, h, l)[3], make([]byte, 36)
			if err := d.Read(second, ir.Float32, out, 0); err != nil {
				t.Fatal(err)
			}
			if bytes.Equal(second, make([]byte, 36)) != (err != nil) {
				t.Fatalf("run %d: the launch behind left %v, with error %v", run, second, err)
			}
			if err != nil {
				if !bytes.Equal(got, h.Args[3].Data) {
					t.Fatalf("run %d wrote to what it scatters into", run)
				}
				continue
			}
			if err := kernels.Same(ir.Float32, got, want[3]); err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
		}
		if n := p.kept[0].Runs(); n != 4 {
			t.Errorf("%d of 4 runs were as the first good one", n)
		}
	})
}
