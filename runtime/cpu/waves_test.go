package cpu

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// waveKernels returns an elementwise kernel, one of rows and a contraction, all from two square
// matrices to a third.
func waveKernels() []*codegen.Kernel {
	f := ir.Float32
	start := func() (*codegen.Kernel, *ir.Builder, ir.Ref, ir.Ref) {
		k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: f}, {Kind: codegen.Input, DT: f}, {Kind: codegen.Output, DT: f}}}
		b := &ir.Builder{}
		return k, b, b.Emit(ir.Load, f, 0), b.Emit(ir.Load, f, 1)
	}
	finish := func(k *codegen.Kernel, b *ir.Builder, v ir.Ref) *codegen.Kernel {
		k.Body, k.Stores = b.Code, []codegen.Store{{Operand: 2, Value: v}}
		return k
	}
	var ks []*codegen.Kernel
	k, b, x, y := start()
	ks = append(ks, finish(k, b, b.Emit(ir.Tanh, f, 0, b.Emit(ir.Add, f, 0, x, y))))
	k, b, x, y = start()
	sum := b.Emit(ir.Sum, f, 0, b.Emit(ir.Abs, f, 0, x))
	ks = append(ks, finish(k, b, b.Emit(ir.Div, f, 0, y, b.Emit(ir.Add, f, 0, sum, b.Emit(ir.Const, f, uint64(math.Float32bits(1)))))))
	k, b, x, y = start()
	k = finish(k, b, b.Emit(ir.Dot, f, 0, x, y))
	k.Operands[2].Row = true
	return append(ks, k)
}

// waveLaunch returns a launch of kernel number which, from x and y to out, which are n by n.
func waveLaunch(p runtime.Program, which int, n int64, x, y, out runtime.Buffer) runtime.Launch {
	l := runtime.Launch{Prog: p, Rank: 2, Kept: 2, Args: []runtime.Access{{Buf: x}, {Buf: y}, {Buf: out}}}
	l.Dims[0], l.Dims[1] = n, n
	for i := range l.Args {
		l.Args[i].Stride[0], l.Args[i].Stride[1] = n, 1
	}
	switch which {
	case 1:
		l.Kept = 1
	case 2: // rows of x, columns of y
		l.Rank, l.Dims[2] = 3, n
		l.Args[0].Stride[1], l.Args[0].Stride[2] = 0, 1
		l.Args[1].Stride[0], l.Args[1].Stride[1], l.Args[1].Stride[2] = 0, 1, n
	}
	return l
}

// TestWaves runs random lists of launches of different sizes on a few buffers, and compares
// several threads with one.
func TestWaves(t *testing.T) {
	lists := 60
	if testing.Short() {
		lists = 15
	}
	for how, tier := range map[string]int{"interpreted": -1, "code": 1} {
		t.Run(how, func(t *testing.T) {
			one, many := openTest(t, runtime.Config{Tier: tier, Threads: 1}), openTest(t, runtime.Config{Tier: tier, Threads: 4})
			for seed := range lists {
				want := waveRun(t, one, uint64(seed))
				got := waveRun(t, many, uint64(seed))
				for i := range want {
					if !bytes.Equal(got[i], want[i]) {
						t.Fatalf("list %d: buffer %d is not what launches in order leave there", seed, i)
					}
				}
			}
			if n := many.Stats().Grouped; n < int64(lists) {
				t.Errorf("%d launches ran beside others in %d lists", n, lists)
			}
			if n := one.Stats().Grouped; n != 0 {
				t.Errorf("%d launches ran beside others on one thread", n)
			}
		})
	}
}

// waveRun runs list number seed and returns the contents of its buffers.
func waveRun(t *testing.T, d *device, seed uint64) [][]byte {
	t.Helper()
	return waveRunBy(t, d, seed, func(list []runtime.Launch, _ [][]runtime.Buffer, _ *rand.Rand) {
		if err := d.Run(list); err != nil {
			t.Fatal(err)
		}
	})
}

// waveRunBy is waveRun with a run function, which may replace buffers by others of the same size.
func waveRunBy(t *testing.T, d *device, seed uint64, run func(list []runtime.Launch, bufs [][]runtime.Buffer, rng *rand.Rand)) (out [][]byte) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 16))
	ks := waveKernels()
	progs := make([]runtime.Program, len(ks))
	for i, k := range ks {
		p, err := d.Build(k)
		if err != nil {
			t.Fatal(err)
		}
		progs[i] = p
	}
	// Launches use buffers of one size as operands.
	var bufs [][]runtime.Buffer
	var sizes []int64
	for range 3 {
		n := 8 + rng.Int64N(90)
		sizes = append(sizes, n)
		var some []runtime.Buffer
		for range 3 + rng.IntN(8) {
			b, err := d.Alloc(n * n * 4)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Free(b)
			data := make([]byte, 0, n*n*4)
			for range n * n {
				data = append(data, 0, 0, byte(rng.IntN(256)), byte(63+128*rng.IntN(2)))
			}
			if err := d.Write(b, ir.Float32, 0, data); err != nil {
				t.Fatal(err)
			}
			some = append(some, b)
		}
		bufs = append(bufs, some)
	}
	var list []runtime.Launch
	for range 2 + rng.IntN(60) {
		size, which := rng.IntN(len(bufs)), rng.IntN(len(ks))
		some := bufs[size]
		x, y, to := rng.IntN(len(some)), rng.IntN(len(some)), rng.IntN(len(some))
		if which > 0 && (to == x || to == y) {
			which = 0 // rows and products do not work in place
		}
		l := waveLaunch(progs[which], which, sizes[size], some[x], some[y], some[to])
		if which > 0 || rng.IntN(3) > 0 {
			list = append(list, l)
			continue
		}
		list = append(list, piecesOf(l, 1+rng.Int64N(sizes[size]-1), int32(len(list)+1))...)
	}
	run(list, bufs, rng)
	for i, some := range bufs {
		for _, b := range some {
			data := make([]byte, sizes[i]*sizes[i]*4)
			if err := d.Read(data, ir.Float32, b, 0); err != nil {
				t.Fatal(err)
			}
			out = append(out, data)
		}
	}
	return out
}

// piecesOf splits an elementwise launch into two that write pieces: some rows and the others.
func piecesOf(l runtime.Launch, rows int64, number int32) []runtime.Launch {
	rest := l
	rest.Args = slices.Clone(l.Args)
	l.Args[2].Piece, rest.Args[2].Piece = number, number
	l.Dims[0], rest.Dims[0] = rows, l.Dims[0]-rows
	for i := range rest.Args {
		rest.Args[i].Offset += rows * rest.Args[i].Stride[0]
	}
	return []runtime.Launch{l, rest}
}

// TestWavesOfPieces checks that launches that write pieces of one tensor do not wait for each
// other, and that other launches, and pieces of another tensor in the same memory, wait for all of
// them.
func TestWavesOfPieces(t *testing.T) {
	d := openTest(t, runtime.Config{Tier: -1, Threads: 2})
	p, err := d.Build(waveKernels()[0])
	if err != nil {
		t.Fatal(err)
	}
	var b [4]runtime.Buffer
	for i := range b {
		if b[i], err = d.Alloc(64 * 4); err != nil {
			t.Fatal(err)
		}
		defer d.Free(b[i])
	}
	var list []runtime.Launch
	list = append(list, piecesOf(waveLaunch(p, 0, 8, b[0], b[1], b[2]), 3, 1)...) // 0, 0
	list = append(list, waveLaunch(p, 0, 8, b[2], b[1], b[3]))                    // reads them: 1
	list = append(list, piecesOf(waveLaunch(p, 0, 8, b[0], b[1], b[2]), 3, 2)...) // 2, 2
	list = append(list, piecesOf(waveLaunch(p, 0, 8, b[0], b[1], b[2]), 3, 3)...) // of another tensor: 3, 3
	list = append(list, waveLaunch(p, 0, 8, b[0], b[1], b[2]))                    // 4
	var o ordering
	o.turns = make([]turn, len(list))
	if !o.levels(list) {
		t.Fatal("all have levels of their own")
	}
	for i, want := range []int32{0, 0, 1, 2, 2, 3, 3, 4} {
		if o.turns[i].level != want {
			t.Errorf("launch %d has level %d, not %d", i, o.turns[i].level, want)
		}
	}
}

// TestWavesFault checks that launches before one that may meet an index out of range run before
// it, and that launches after it do not run if it has failed.
func TestWavesFault(t *testing.T) {
	f := ir.Float32
	b := &ir.Builder{}
	k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: ir.Int32}, {Kind: codegen.Input, DT: f}, {Kind: codegen.Output, DT: f}}}
	v := b.Emit(ir.LoadAt, f, codegen.LoadAtImm(1, ir.IndexError), b.Emit(ir.Load, ir.Int32, 0))
	k.Body, k.Stores = b.Code, []codegen.Store{{Operand: 2, Value: v}}
	for how, tier := range map[string]int{"interpreted": -1, "code": 1} {
		t.Run(how, func(t *testing.T) {
			d := openTest(t, runtime.Config{Tier: tier, Threads: 4})
			look, err := d.Build(k)
			if err != nil {
				t.Fatal(err)
			}
			tanh, err := d.Build(waveKernels()[0])
			if err != nil {
				t.Fatal(err)
			}
			const n = 60
			alloc := func(first byte) runtime.Buffer {
				b, err := d.Alloc(n * n * 4)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { d.Free(b) })
				data := make([]byte, n*n*4)
				data[3] = first
				if err := d.Write(b, f, 0, data); err != nil {
					t.Fatal(err)
				}
				return b
			}
			const before, after = 7, 9
			ones := alloc(0x3f)
			var list []runtime.Launch
			var outs []runtime.Buffer
			for i := range before + 1 + after {
				outs = append(outs, alloc(0))
				if i != before {
					list = append(list, waveLaunch(tanh, 0, n, ones, ones, outs[i]))
					continue
				}
				l := waveLaunch(look, 0, n, alloc(0x7f), ones, outs[i])
				l.Args[1].Stride, l.Args[1].IndexStride, l.Args[1].IndexSize = [runtime.MaxRank]int64{}, 1, n*n
				list = append(list, l)
			}
			err = d.Run(list)
			var at *runtime.LaunchError
			if !errors.As(err, &at) || at.Index != before {
				t.Fatalf("an index out of range in launch %d gives %v", before, err)
			}
			for i, b := range outs {
				data := make([]byte, n*n*4)
				if err := d.Read(data, f, b, 0); err != nil {
					t.Fatal(err)
				}
				if ran := data[3] != 0; i != before && ran != (i < before) {
					t.Errorf("launch %d of %d, where number %d fails, has run: %v", i, len(list), before, ran)
				}
			}
			if d.Stats().Grouped < before {
				t.Error("the launches before it did not run at a time")
			}
		})
	}
}
