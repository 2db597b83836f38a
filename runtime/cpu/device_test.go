package cpu

import (
	"bytes"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// openTest opens a device. A fault that the device survives fails the test, unless the test has
// its own OnError.
func openTest(t testing.TB, c runtime.Config) *device {
	t.Helper()
	if c.OnError == nil {
		c.OnError = func(err error) {
			t.Error(err)
			if ce, ok := err.(*runtime.CompileError); ok {
				t.Logf("%.6000s\n%s", ce.Log, ce.Kernel)
			}
		}
	}
	if c.Tier > 0 && c.Cache == nil {
		c.Cache = sharedCode
	}
	return opened(t, asTold(c))
}

// opened opens a device, whatever the environment says.
func opened(t testing.TB, c runtime.Config) *device {
	t.Helper()
	d, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// asTold returns the configuration changed by the environment: with MILLRACE_COMPILE=c, kernels
// are compiled from C instead of becoming machine code, as in programs. So all tests that do not
// select one of them can run with both.
func asTold(c runtime.Config) runtime.Config {
	if os.Getenv("MILLRACE_COMPILE") == "c" && c.Compile <= runtime.CompileWait {
		return byC(c)
	}
	return c
}

// byC returns the configuration with kernels compiled from C, and with runs that wait for C if
// they waited for code.
func byC(c runtime.Config) runtime.Config {
	if c.Compile == runtime.CompileWait && c.Tier == 0 {
		c.Tier = 1
	}
	c.Compile = runtime.CompileC
	return c
}

// onDevice runs a launch on a device, on copies of the operands' memory, and returns the memory
// afterwards.
func onDevice(t testing.TB, d *device, k *codegen.Kernel, h *kernels.Launch) [][]byte {
	t.Helper()
	var out [][]byte
	bound(t, d, k, h, func(l *runtime.Launch) {
		if err := d.Run([]runtime.Launch{*l}); err != nil {
			t.Fatal(err)
		}
		out = contents(t, d, k, h, l)
	})
	return out
}

// scaled returns a kernel that multiplies by a scalar.
func scaled(t testing.TB) *codegen.Kernel {
	t.Helper()
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\nscalar 0 : float32\n%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = mul %0 %1 : float32\nstore 1 %2\n")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// prepares counts the prepared lists.
var prepares atomic.Int64

// keptRuns counts the runs of recorded launches.
var keptRuns atomic.Int64

// again prepares a launch, if possible, and runs it on other copies of the operands' memory, each
// at its own address. The first run is walked, and may record the steps of the others. again
// overwrites the old memory, so that a run that still reads it gives wrong results.
func again(t testing.TB, d *device, k *codegen.Kernel, h *kernels.Launch, want [][]byte) {
	t.Helper()
	x, ok := any(d).(runtime.Preparer)
	if !ok {
		return
	}
	bound(t, d, k, h, func(first *runtime.Launch) {
		p := x.Prepare([]runtime.Launch{*first}, nil)
		if p == nil {
			return
		}
		prepares.Add(1)
		defer p.Close()
		if g, ok := p.(*prepared); ok {
			defer func() {
				for _, k := range g.kept {
					if k != nil {
						keptRuns.Add(k.Runs())
					}
				}
			}()
		}
		runs := 0
		var run func(was *runtime.Launch)
		run = func(was *runtime.Launch) {
			spoilOperands(t, d, k, h, was)
			if runs++; runs > 3 {
				return
			}
			bound(t, d, k, h, func(l *runtime.Launch) {
				for i, a := range l.Args {
					if a.Buf != nil && !p.Set([]runtime.Place{{Launch: 0, Arg: int32(i)}}, a.Buf) {
						t.Fatalf("operand %d: a copy of its buffer will not do", i)
					}
				}
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				for i, got := range contents(t, d, k, h, l) {
					if got == nil {
						continue
					}
					if err := kernels.Same(k.Operands[i].DT, got, want[i]); err != nil {
						t.Fatalf("prepared, run %d, operand %d: %v\n%s", runs, i, err, k)
					}
				}
				run(l)
			})
		}
		run(first)
	})
}

// spoilOperands overwrites the operands of a launch.
func spoilOperands(t testing.TB, d *device, k *codegen.Kernel, h *kernels.Launch, l *runtime.Launch) {
	t.Helper()
	for i, a := range l.Args {
		if a.Buf == nil || sharing(h, i) < i {
			continue
		}
		other := bytes.Repeat([]byte{0xa5}, len(h.Args[i].Data))
		if k.Operands[i].DT == ir.Bool {
			clear(other)
		}
		if err := d.Write(a.Buf, k.Operands[i].DT, 0, other); err != nil {
			t.Fatal(err)
		}
	}
}

// hold keeps a kernel's program and code until the test ends, as a plan would. Without it the next
// garbage collection frees them, and they are compiled again.
func hold(t testing.TB, d *device, k *codegen.Kernel) {
	t.Helper()
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { goruntime.KeepAlive(p) })
}

// bound calls f with a launch whose operands are copies in the device's memory.
func bound(t testing.TB, d *device, k *codegen.Kernel, h *kernels.Launch, f func(l *runtime.Launch)) {
	t.Helper()
	p, err := d.Build(k)
	if err != nil {
		t.Fatal(err)
	}
	l := runtime.Launch{Prog: p, Rank: len(h.Dims), Kept: h.Kept, Scalars: h.Scalars}
	copy(l.Dims[:], h.Dims)
	for i, a := range h.Args {
		if j := sharing(h, i); j < i {
			a.Access.Buf = l.Args[j].Buf
		} else if k.Operands[i].Kind != codegen.Index {
			b, err := d.Alloc(int64(len(a.Data)))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Free(b)
			if err := d.Write(b, k.Operands[i].DT, 0, a.Data); err != nil {
				t.Fatal(err)
			}
			a.Access.Buf = b
		}
		l.Args = append(l.Args, a.Access)
	}
	f(&l)
}

// contents returns the operands' memory.
func contents(t testing.TB, d *device, k *codegen.Kernel, h *kernels.Launch, l *runtime.Launch) [][]byte {
	t.Helper()
	out := make([][]byte, len(h.Args))
	for i, a := range l.Args {
		if a.Buf == nil {
			continue
		}
		out[i] = make([]byte, len(h.Args[i].Data))
		if err := d.Read(out[i], k.Operands[i].DT, a.Buf, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// sharing returns the first operand with operand i's memory.
func sharing(h *kernels.Launch, i int) int {
	for j := range i {
		if len(h.Args[i].Data) > 0 && len(h.Args[j].Data) > 0 && &h.Args[i].Data[0] == &h.Args[j].Data[0] {
			return j
		}
	}
	return i
}

// reference returns the operands' memory after a launch by the oracle.
func reference(t testing.TB, k *codegen.Kernel, h *kernels.Launch) [][]byte {
	t.Helper()
	args := append([]codegen.HostArg(nil), h.Args...)
	out := make([][]byte, len(args))
	for i := range args {
		if j := sharing(h, i); j < i {
			args[i].Data = out[j]
		} else {
			args[i].Data = bytes.Clone(args[i].Data)
		}
		out[i] = args[i].Data
	}
	if err := codegen.Interpret(k, h.Dims, h.Kept, args, h.Scalars); err != nil {
		t.Fatal(err)
	}
	return out
}

func compare(t testing.TB, what string, k *codegen.Kernel, got, want [][]byte) {
	t.Helper()
	for i := range want {
		if want[i] == nil {
			continue
		}
		if err := kernels.Same(k.Operands[i].DT, got[i], want[i]); err != nil {
			made := ""
			for _, s := range k.Stores {
				if s.Operand == i {
					made = k.Body[s.Value].Op.String()
				}
			}
			t.Errorf("%s: operand %d (%s): %v", what, i, made, err)
		}
	}
}

// tiers are the ways to run that must agree.
var tiers = map[string]runtime.Config{
	"tier0": {Tier: -1, Threads: 2},
	"tier1": {Tier: 1, Threads: 2},
}

// TestEveryOp compares every op on every dtype with the oracle.
func TestEveryOp(t *testing.T) {
	for name, c := range tiers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openTest(t, c)
			for _, dt := range kernels.DTypes {
				if c.Tier > 0 && testing.Short() && dt != ir.Float32 {
					continue // a large compile each
				}
				rng := rand.New(rand.NewPCG(1, uint64(dt)))
				for half := range ir.Op(2) { // a launch has a limited number of operands
					k := kernels.EveryOp(dt, func(op ir.Op, out ir.DType) bool {
						return op&1 == half && (c.Tier <= 0 || !dt.Storage() || kernels.StorageOps(op, out))
					})
					h := kernels.NewLaunch(rng, k, []int64{3, 37}, 2, kernels.Dense)
					compare(t, dt.String(), k, onDevice(t, d, k, h), reference(t, k, h))
				}
			}
			if s := d.Stats(); c.Tier > 0 && d.comp != nil && s.Tier0 > 0 {
				t.Errorf("%d launches in tier 0", s.Tier0)
			}
		})
	}
}

var dims = [][]int64{{1}, {7}, {64}, {1000}, {3, 5}, {5, 64}, {2, 3, 33}, {4, 1, 9, 2}, {}}

// TestPatterns accesses operands in every pattern.
func TestPatterns(t *testing.T) {
	few := func(op ir.Op, out ir.DType) bool {
		switch op {
		case ir.Add, ir.Mul, ir.Lt, ir.Where, ir.Iota, ir.Exp, ir.Cast, ir.Uniform:
			return true
		}
		return false
	}
	for name, c := range tiers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openTest(t, c)
			for _, dt := range kernels.DTypes {
				if c.Tier > 0 && ir.SetOf(ir.Bool, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Uint16, ir.BFloat16).Has(dt) {
					continue // as wide as other dtypes, and every variant is a compile
				}
				if c.Tier > 0 && !thorough && !ir.SetOf(ir.Float32, ir.Int8, ir.Float16).Has(dt) {
					continue
				}
				if c.Tier > 0 && testing.Short() && dt != ir.Float32 {
					continue
				}
				k := kernels.EveryOp(dt, func(op ir.Op, out ir.DType) bool {
					// Casts store every dtype in every pattern: once is enough.
					once := c.Tier <= 0 || thorough || dt == ir.Float32
					return few(op, out) && (op != ir.Cast || once)
				})
				for how := range kernels.NumPatterns {
					if c.Tier > 0 && !thorough && (dt == ir.Int8 && how%2 > 0 || dt == ir.Float16 && how%2 == 0) {
						continue // narrow dtypes share the patterns: every variant is a compile
					}
					rng := rand.New(rand.NewPCG(2, uint64(how)))
					for _, dims := range dims {
						if how == kernels.Mixed && c.Tier > 0 && (!thorough || len(dims) != 2) {
							continue // a compile each
						}
						h := kernels.NewLaunch(rng, k, dims, len(dims), how)
						compare(t, dt.String(), k, onDevice(t, d, k, h), reference(t, k, h))
						if t.Failed() {
							t.Fatalf("pattern %d, dims %v", how, dims)
						}
					}
				}
			}
		})
	}
}

// bytesOf returns a buffer's memory.
func bytesOf(b *memory.Buffer) []byte { return unsafe.Slice((*byte)(b.P), b.Bytes()) }
