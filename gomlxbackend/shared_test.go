package gomlxbackend

import (
	"fmt"
	"math"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/millrace-go/millrace/internal/fault"
	_ "github.com/millrace-go/millrace/runtime/null"
)

// newShared makes a shared buffer of float32 with elements.
func newShared(t *testing.T, b *Backend, elements ...float32) (compute.Buffer, []float32) {
	t.Helper()
	buf, flat, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Float32, len(elements)))
	if err != nil {
		t.Fatal(err)
	}
	list := flat.([]float32)
	copy(list, elements)
	return buf, list
}

// data is a buffer's memory.
func data(t *testing.T, buf compute.Buffer) []float32 {
	t.Helper()
	flat, err := buf.Data()
	if err != nil {
		t.Fatal(err)
	}
	return flat.([]float32)
}

func execute(t *testing.T, e compute.Executable, donate []bool, in ...compute.Buffer) []compute.Buffer {
	t.Helper()
	out, err := e.Execute(in, donate, 0)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each dtype: zeros of its Go type, what is written is computed with and read
// back, and the slice is the same each time.
func TestSharedDTypes(t *testing.T) {
	for _, config := range []string{"cpu", "cpu,check", "cpu,tier=0,threads=1"} {
		b := openBackend(t, config)
		if !b.HasSharedBuffers() {
			t.Fatal("no shared buffers")
		}
		for dt, ok := range b.Capabilities().DTypes {
			if !ok {
				continue
			}
			for _, dims := range [][]int{{}, {5}, {3, 3}, {0}, {2, 0}} {
				s := shapes.Make(dt, dims...)
				name := fmt.Sprint(config, ": ", s)
				like := dtypes.MakeAnySlice(dt, s.Size())
				// Memory that held something else before.
				old := reflect.MakeSlice(reflect.TypeFor[[]uint8](), s.Size()*16+1, s.Size()*16+1).Interface().([]uint8)
				for i := range old {
					old[i] = 0xff
				}
				if err := must(b.BufferFromFlatData(0, old, shapes.Make(dtypes.Uint8, len(old)))).Finalize(); err != nil {
					t.Fatal(err)
				}
				buf, flat, err := b.NewSharedBuffer(0, s)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if !reflect.DeepEqual(flat, like) {
					t.Errorf("%s: %T %v, want %T of zeros", name, flat, flat, like)
				}
				bd := b.Builder("move")
				f := bd.Main()
				x := must(f.Parameter("x", s, nil))
				all := make([]int, len(dims))
				for i := range all {
					all[i] = i
				}
				if err := f.Return([]compute.Value{x, must(f.Reverse(x, all...))}, nil); err != nil {
					t.Fatal(err)
				}
				e := must(bd.Compile())
				n := reflect.ValueOf(flat).Len()
				bytes := dtypes.UnsafeByteSliceFromAny(flat)
				for round := range 3 {
					for i := range bytes {
						bytes[i] = byte(37*(i+1) + round)
						if dt == dtypes.Bool {
							bytes[i] = byte((i + round) % 2)
						}
					}
					if used := s.Size() * dt.Bits() % 8; used > 0 {
						bytes[len(bytes)-1] &= 1<<used - 1
					}
					want := dtypes.MakeAnySlice(dt, s.Size())
					reflect.Copy(reflect.ValueOf(want), reflect.ValueOf(flat))
					out := execute(t, e, nil, buf)
					clear(bytes) // Execute has read it
					got, err := out[0].Data()
					if err != nil || n > 0 && !slices.Equal(dtypes.UnsafeByteSliceFromAny(got), dtypes.UnsafeByteSliceFromAny(want)) {
						t.Errorf("%s: returned as %v, want %v (%v)", name, got, want, err)
					}
					twice := execute(t, e, nil, out[1])
					got = dtypes.MakeAnySlice(dt, s.Size())
					if err := twice[1].ToFlatData(got); err != nil || !reflect.DeepEqual(got, want) && n > 0 &&
						!slices.Equal(dtypes.UnsafeByteSliceFromAny(got), dtypes.UnsafeByteSliceFromAny(want)) {
						t.Errorf("%s: twice reversed %v, want %v (%v)", name, got, want, err)
					}
				}
				again, err := buf.Data()
				if err != nil || reflect.ValueOf(again).UnsafePointer() != reflect.ValueOf(flat).UnsafePointer() && n > 0 {
					t.Errorf("%s: Data moved (%v)", name, err)
				}
				if err := buf.Finalize(); err != nil {
					t.Error(err)
				}
				if _, err := buf.Data(); err == nil {
					t.Errorf("%s: Data after Finalize", name)
				}
			}
		}
	}
}

// Everything that can be an alias of something else behind the scenes is its own
// where the program can write to it.
func TestSharedMemoryIsNobodyElses(t *testing.T) {
	b := openBackend(t, "cpu")
	e := compile(b, 4, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		c := must(f.Constant([]float32{7, 8, 9, 10}, 4))
		neg := must(f.Neg(in[0]))
		view := must(f.Reshape(must(f.Transpose(must(f.Reshape(in[0], 2, 2)), 1, 0)), 4))
		spread := must(f.BroadcastInDim(must(f.Slice(in[1], []int{0}, []int{1}, []int{1})), shapes.Make(dtypes.Float32, 4), []int{0}))
		return []compute.Value{in[0], in[0], in[1], c, c, neg, neg, view, view, spread, must(f.Add(in[0], c))}
	})
	want := func(x, y []float32) [][]float32 {
		return [][]float32{x, x, y, {7, 8, 9, 10}, {7, 8, 9, 10}, {-x[0], -x[1], -x[2], -x[3]}, {-x[0], -x[1], -x[2], -x[3]},
			{x[0], x[2], x[1], x[3]}, {x[0], x[2], x[1], x[3]}, {y[0], y[0], y[0], y[0]}, {x[0] + 7, x[1] + 8, x[2] + 9, x[3] + 10}}
	}
	for round := range 8 {
		x, xs := newShared(t, b, 1, 2, 3, 4)
		y := upload(t, b, []float32{5, 6, 7, 8}, 4)
		if round%2 == 1 {
			data(t, y)
		}
		donate := [][]bool{nil, {true, false}, {false, true}, {true, true}}[round/2]
		expected := want(slices.Clone(xs), []float32{5, 6, 7, 8})
		out := execute(t, e, donate, x, y)
		// The program writes as soon as it may, to inputs and to each result in turn.
		if donate == nil || !donate[0] {
			copy(xs, []float32{100, 200, 300, 400})
		}
		if donate == nil || !donate[1] {
			copy(data(t, y), []float32{-100, -200, -300, -400})
		}
		for i := range out {
			got := data(t, out[i])
			if !slices.Equal(got, expected[i]) {
				t.Errorf("round %d: result %d is %v, want %v", round, i, got, expected[i])
			}
			for k := range got {
				got[k] = float32(-1000 * (i + 1))
			}
		}
		for i, buf := range out {
			if got := download(t, buf); got[3] != float32(-1000*(i+1)) {
				t.Errorf("round %d: result %d was written to by another name: %v", round, i, got)
			}
		}
	}
}

// Inputs that are written to between runs, by a graph that is walked each time,
// and one that is recorded.
func TestSharedWritesAreSeen(t *testing.T) {
	b := openBackend(t, "cpu")
	scalar := shapes.Make(dtypes.Int32)
	vector := shapes.Make(dtypes.Float32, 3)
	loop := func(f compute.Function, in []compute.Value) []compute.Value {
		part := func(do func(c compute.Function, i, y compute.Value) []compute.Value) compute.Function {
			c := must(f.Closure())
			if err := c.Return(do(c, must(c.Parameter("i", scalar, nil)), must(c.Parameter("y", vector, nil))), nil); err != nil {
				panic(err)
			}
			return c
		}
		return must(f.While(
			part(func(c compute.Function, i, _ compute.Value) []compute.Value {
				return []compute.Value{must(c.LessThan(i, must(c.Constant([]int32{3}))))}
			}),
			part(func(c compute.Function, i, y compute.Value) []compute.Value {
				return []compute.Value{must(c.Add(i, must(c.Constant([]int32{1})))), must(c.Add(y, in[0]))}
			}),
			must(f.Constant([]int32{0})), in[0]))[1:]
	}
	for name, graph := range map[string]func(f compute.Function, in []compute.Value) []compute.Value{
		"walked": loop,
		"recorded": func(f compute.Function, in []compute.Value) []compute.Value {
			return []compute.Value{must(f.Mul(in[0], must(f.Constant([]float32{4}))))}
		},
	} {
		e := compile(b, 3, 1, graph)
		x, xs := newShared(t, b, 0, 0, 0)
		var kept []compute.Buffer
		for i := range 20 {
			for k := range xs {
				xs[k] = float32(i*10 + k)
			}
			kept = append(kept, execute(t, e, nil, x)[0])
		}
		clear(xs)
		for i, buf := range kept {
			base := float32(i * 40)
			if got := download(t, buf); !slices.Equal(got, []float32{base, base + 4, base + 8}) {
				t.Errorf("%s: result %d is %v", name, i, got)
			}
		}
	}
}

// The address of a buffer's memory stays while it is computed with, collections
// included, and donation hands it on.
func TestSharedAddress(t *testing.T) {
	b := openBackend(t, "cpu,compile=off,tune=off")
	const n = 1 << 14
	e := compile(b, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], must(f.Constant([]float32{1}))))}
	})
	x := upload(t, b, make([]float32, n), n)
	at := &data(t, x)[0]
	for i := range 20 {
		execute(t, e, nil, x)
		if i%7 == 0 {
			goruntime.GC()
		}
		if &data(t, x)[0] != at {
			t.Fatal("moved")
		}
	}
	before := b.Device().Stats()
	for range 5 {
		y := execute(t, e, []bool{true}, x)[0]
		if _, err := x.Data(); err == nil {
			t.Error("Data of a donated buffer")
		}
		if err := x.Finalize(); err != nil {
			t.Error(err)
		}
		x = y
	}
	after := b.Device().Stats()
	if got := after.InPlace - before.InPlace; got != 5 {
		t.Errorf("%d results in place, want 5", got)
	}
	got := data(t, x)
	if &got[0] != at || got[n-1] != 5 {
		t.Errorf("five steps in place: %v at another address: %v", got[n-1], &got[0] != at)
	}
	if allocs := b.Device().Stats().Runtime.Allocs - before.Runtime.Allocs; allocs != 0 {
		t.Errorf("%d allocations in place", allocs)
	}
}

// Complex values come and go as they lie in Go's memory, parts of them as well.
func TestSharedComplex(t *testing.T) {
	b := openBackend(t, "cpu")
	bd := b.Builder("parts")
	f := bd.Main()
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2), nil))
	z := must(f.Parameter("z", shapes.Make(dtypes.Complex64, 2), nil))
	if err := f.Return([]compute.Value{must(f.Complex(x, x)), must(f.Real(z)), must(f.Imag(z)), must(f.Add(z, z)), z}, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	for round := range 4 {
		xb, xs := newShared(t, b, 1, 2)
		zb, flat, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Complex64, 2))
		if err != nil {
			t.Fatal(err)
		}
		zs := flat.([]complex64)
		copy(zs, []complex64{3 + 4i, 5 + 6i})
		donate := []bool{round&1 > 0, round&2 > 0}
		out := execute(t, e, donate, xb, zb)
		if !donate[0] {
			clear(xs)
		}
		clear(zs) // never the memory of a result
		for i, want := range []any{[]complex64{1 + 1i, 2 + 2i}, []float32{3, 5}, []float32{4, 6}, []complex64{6 + 8i, 10 + 12i}, []complex64{3 + 4i, 5 + 6i}} {
			got, err := out[i].Data()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("donate %v: result %d is %v, want %v (%v)", donate, i, got, want, err)
			}
			reflect.ValueOf(got).Index(0).SetZero()
		}
		if _, err := zb.Data(); (err != nil) != donate[1] {
			t.Errorf("donate %v: Data: %v", donate, err)
		}
	}
}

// A slice is readable for as long as somebody has it, whatever became of its
// buffer, and what nobody has is given back.
func TestSharedSlicesOutliveBuffers(t *testing.T) {
	opened := must(New("cpu"))
	b := opened.(*Backend)
	defer b.Finalize()
	const n = 1 << 16
	e := compile(b, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Neg(in[0]))}
	})
	before := b.Device().Stats().LiveBytes
	var kept [][]float32
	for i := range 12 {
		x, xs := newShared(t, b, slices.Repeat([]float32{float32(i + 1)}, n)...)
		out := execute(t, e, nil, x)[0]
		kept = append(kept, xs, data(t, out))
		switch i % 3 {
		case 0:
			if err := x.Finalize(); err != nil {
				t.Fatal(err)
			}
		case 1:
			execute(t, e, []bool{true}, out) // whose result is dropped
			kept[len(kept)-1] = slices.Clone(kept[len(kept)-1])
			for k := range kept[len(kept)-1] {
				kept[len(kept)-1][k] = -float32(i + 1)
			}
		}
	}
	goruntime.GC()
	goruntime.GC()
	for range 8 { // what was given back is handed out again
		must(b.BufferFromFlatData(0, slices.Repeat([]float32{99}, n), shapes.Make(dtypes.Float32, n)))
		newShared(t, b, make([]float32, n)...)
		goruntime.GC()
	}
	for i, list := range kept {
		want := float32(i/2 + 1)
		if i%2 == 1 {
			want = -want
		}
		if list[0] != want || list[n-1] != want {
			t.Errorf("slice %d is %v ... %v, want %v", i, list[0], list[n-1], want)
		}
	}
	kept = nil
	left := b.Device().Stats().LiveBytes - before
	for i := 0; i < 50 && left > 4*n; i++ {
		goruntime.GC()
		time.Sleep(time.Millisecond)
		left = b.Device().Stats().LiveBytes - before
	}
	if left > 4*n {
		t.Errorf("%d bytes are left of buffers that nobody has", left)
	}
	x, xs := newShared(t, b, 1, 2)
	b.Finalize()
	if xs[1] = 3; xs[1] != 3 {
		t.Error("a slice after the backend is gone")
	}
	if _, err := x.Data(); err == nil {
		t.Error("Data after the backend is gone")
	}
	if _, _, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Float32, 1)); err == nil {
		t.Error("NewSharedBuffer after the backend is gone")
	}
}

// A program that never finalises anything does not grow: memory of Go is what its
// collector looks at.
func TestSharedDropped(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	const n = 1 << 18
	e := compile(b, n, 1, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Neg(in[0])), in[0]}
	})
	most := int64(0)
	for i := range 300 {
		x, xs := newShared(t, b, make([]float32, n)...)
		xs[n-1] = float32(i)
		for _, buf := range execute(t, e, nil, x) {
			if got := data(t, buf)[n-1]; got != -float32(i) && got != float32(i) {
				t.Fatalf("%v in run %d", got, i)
			}
		}
		most = max(most, b.Device().Stats().LiveBytes)
	}
	if most > 256<<20 {
		t.Errorf("%d MiB live at once, of 900 in all", most>>20)
	}
}

// Shared buffers without elements are operands like others. Go finds an address
// of its memory that C gets unpinned where GOEXPERIMENT is cgocheck2.
func TestSharedNothing(t *testing.T) {
	b := openBackend(t, "cpu")
	e := compile(b, 0, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		c := must(f.Constant([]float32{4, 5}, 2))
		return []compute.Value{must(f.Concatenate(0, in[0], c, in[1])), in[0], must(f.Neg(in[1]))}
	})
	for range 3 {
		for _, donate := range [][]bool{nil, {true, false}, {true, true}} {
			x, _ := newShared(t, b)
			y, _ := newShared(t, b)
			out := execute(t, e, donate, x, y)
			if got := data(t, out[0]); !slices.Equal(got, []float32{4, 5}) {
				t.Errorf("donate %v: %v", donate, got)
			}
			for _, buf := range out[1:] {
				if got := data(t, buf); got == nil || len(got) > 0 {
					t.Errorf("donate %v: %v of nothing", donate, got)
				}
			}
		}
	}
}

// What cannot be had is an error, and nothing is lost by it.
func TestSharedRefused(t *testing.T) {
	b := openBackend(t, "cpu,memory=1MiB,compile=off")
	for _, s := range []shapes.Shape{
		shapes.Make(dtypes.Float32, 1<<20), shapes.Make(dtypes.Complex128, 1<<20), shapes.Make(dtypes.Uint4, 1<<24),
		{DType: dtypes.Float32, Dimensions: []int{math.MaxInt / 4, 8}}, {DType: dtypes.Complex64, Dimensions: []int{3, math.MaxInt / 32}},
		{DType: dtypes.Float32, Dimensions: []int{-1}}, shapes.Make(dtypes.Complex64, 1, 1, 1, 1, 1, 1, 1, 1, 1), shapes.Invalid(),
	} {
		if buf, flat, err := b.NewSharedBuffer(0, s); err == nil || buf != nil || flat != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
	if _, _, err := b.NewSharedBuffer(1, shapes.Make(dtypes.Float32, 1)); err == nil || !strings.Contains(err.Error(), "NewSharedBuffer") {
		t.Errorf("device 1: %v", err)
	}
	// Dropped ones make room.
	for range 40 {
		if _, _, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Uint8, 400<<10)); err != nil {
			t.Fatal(err)
		}
	}
	null := openBackend(t, "null")
	if null.HasSharedBuffers() {
		t.Error("a device without memory shares it")
	}
	if _, _, err := null.NewSharedBuffer(0, shapes.Make(dtypes.Float32, 1)); !compute.IsNotImplemented(err) {
		t.Errorf("null: %v", err)
	}
	if _, err := must(null.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 1))).Data(); !compute.IsNotImplemented(err) {
		t.Errorf("null: %v", err)
	}
}

// Memory is refused at each step in turn: errors, and inputs and results as they
// were or gone as a whole.
func TestSharedFaults(t *testing.T) {
	b := openBackend(t, "cpu,compile=off")
	defer fault.Reset()
	bd := b.Builder("faults")
	f := bd.Main()
	s, cs := shapes.Make(dtypes.Float32, 3), shapes.Make(dtypes.Complex64, 3)
	x, z := must(f.Parameter("x", s, nil)), must(f.Parameter("z", cs, nil))
	if err := f.Return([]compute.Value{x, must(f.Neg(x)), must(f.Neg(z)), x}, nil); err != nil {
		t.Fatal(err)
	}
	e := must(bd.Compile())
	failures := 0
	live := b.Device().Stats().LiveBytes
	for _, donate := range [][]bool{nil, {true, true}} {
		for step, clean := 0, 0; clean < 2; step++ {
			xb, xs := newShared(t, b, 1, 2, 3)
			zb, flat, err := b.NewSharedBuffer(0, cs)
			if err != nil {
				t.Fatal(err)
			}
			flat.([]complex64)[2] = 1 + 2i
			fault.SetAfter(fault.Alloc, step, -1)
			out, err := e.Execute([]compute.Buffer{xb, zb}, donate, 0)
			fault.Reset()
			if err != nil {
				failures++
				if donate == nil && (download(t, xb)[2] != 3 || xs[2] != 3) {
					t.Errorf("step %d: the input is gone", step)
				}
			} else {
				clean++
				if got := download(t, out[1]); !slices.Equal(got, []float32{-1, -2, -3}) {
					t.Errorf("step %d: %v", step, got)
				}
				for _, buf := range out {
					fault.SetAfter(fault.Alloc, 0, -1)
					if _, err := buf.Data(); err != nil {
						failures++
					}
					fault.Reset()
					if _, err := buf.Data(); err != nil {
						t.Errorf("step %d: Data after a failure: %v", step, err)
					}
				}
			}
			for _, buf := range append(out, xb, zb) {
				if err := buf.Finalize(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if failures < 8 {
		t.Errorf("%d failures", failures)
	}
	if left := b.Device().Stats().LiveBytes - live; left > 4096 { // constants of the recording
		t.Errorf("%d bytes are left", left)
	}
	fault.Set(fault.Alloc, -1)
	if _, _, err := b.NewSharedBuffer(0, s); err == nil {
		t.Error("memory that was refused")
	}
}

// Many goroutines read the same shared buffer, by Execute, ToFlatData and Data;
// others own theirs and write to them, and some are finalised meanwhile.
func TestSharedHammer(t *testing.T) {
	b := openBackend(t, "cpu")
	const n = 64
	e := compile(b, n, 2, func(f compute.Function, in []compute.Value) []compute.Value {
		return []compute.Value{must(f.Add(in[0], in[1])), in[1], must(f.Neg(in[0]))}
	})
	for range 6 {
		weights := upload(t, b, slices.Repeat([]float32{3}, n), n)
		doomed, _ := newShared(t, b, slices.Repeat([]float32{5}, n)...)
		var wg sync.WaitGroup
		for g := range 6 {
			wg.Go(func() {
				own, flat, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Float32, n))
				if err != nil {
					t.Error(err)
					return
				}
				xs := flat.([]float32)
				for i := range 40 {
					k := float32(g*100 + i)
					for j := range xs {
						xs[j] = k
					}
					out, err := e.Execute([]compute.Buffer{own, weights}, nil, 0)
					if err != nil {
						t.Error(err)
						return
					}
					clear(xs)
					got := make([]float32, n)
					if err := out[0].ToFlatData(got); err != nil || got[n-1] != k+3 {
						t.Errorf("%v, want %v (%v)", got[n-1], k+3, err)
					}
					if i%5 == g%5 {
						same, err := weights.Data()
						if err != nil || same.([]float32)[0] != 3 {
							t.Errorf("%v", err)
						}
						mine, err := out[1].Data()
						if err != nil {
							t.Error(err)
							return
						}
						mine.([]float32)[0] = -1 // not the weights
					}
					if out, err = e.Execute([]compute.Buffer{doomed, out[2]}, []bool{false, true}, 0); err == nil {
						if err := out[0].ToFlatData(got); err != nil || got[0] != 5-k {
							t.Errorf("%v, want %v (%v)", got[0], 5-k, err)
						}
					} else if !strings.Contains(err.Error(), "finalized") && !strings.Contains(err.Error(), "released") {
						t.Error(err)
					}
					if g == 0 && i == 20 {
						if err := doomed.Finalize(); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
	}
}
