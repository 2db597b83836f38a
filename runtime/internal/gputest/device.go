package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/millrace-go/millrace/codegen/shader"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

const copyKernel = "in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\nstore 1 %0"

func testCopy(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{1, 2, 3, 4, 5, 63, 64, 65, 1000, 1 << 20} {
		x := newTrial(parse(t, copyKernel), 1, n)
		x.fillInputs(rng)
		x.check(t, d, ir.Tolerance{})
	}
}

func testScalars(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(1, 3))
	x := newTrial(parse(t, "in 0 : float32\nout 1 : float32\nscalar 0 : float32\nscalar 1 : float32\n"+
		"%0 = load 0 : float32\n%1 = scalar 0 : float32\n%2 = mul %0 %1 : float32\n%3 = scalar 1 : float32\n%4 = add %2 %3 : float32\nstore 1 %4"), 1, 1000)
	x.fillInputs(rng)
	for range 5 {
		x.scalars = []uint64{uint64(math.Float32bits(rng.Float32())), uint64(math.Float32bits(rng.Float32()))}
		x.check(t, d, ir.Tolerance{Rel: 1e-6, Abs: 1e-6})
	}
	if c := d.Stats().Compiles; c != 1 {
		t.Errorf("%d compiles for one kernel and many scalars, want 1", c)
	}
}

// testBeyondOneBinding computes over a tensor that exceeds a single binding and needs more
// workgroups than one dimension of a grid has.
func testBeyondOneBinding(t *testing.T) {
	var n int64
	d := openAs(t, func(i *gpurun.Info) {
		if i.Limits.Binding > 1<<28 && os.Getenv("MILLRACE_LONG") == "" {
			i.Limits.Binding = 32 << 20 // the adapter's own limit is gigabytes
		}
		n = i.Limits.Binding/shader.ElemSize + 1027
	})
	k := parse(t, "in 0 : int32\nindex 1\nout 2 : int32\n%0 = load 0 : int32\n%1 = indexlo 1 : uint32\n"+
		"%2 = convert %1 : int32\n%3 = mul %0 %2 : int32\nstore 2 %3")
	prog, err := d.Build(k)
	must(t, err)
	l := runtime.Launch{Prog: prog, Rank: 1, Kept: 1, Args: make([]runtime.Access, 3)}
	l.Dims[0] = n
	for i := range l.Args {
		l.Args[i].Stride[0] = 1
		if i != 1 {
			l.Args[i].Buf, err = d.Alloc(n * shader.ElemSize)
			must(t, err)
		}
	}
	data := make([]byte, n*shader.ElemSize)
	for i := range n {
		binary.LittleEndian.PutUint32(data[i*4:], uint32(i*7+1))
	}
	must(t, d.Write(l.Args[0].Buf, ir.Int32, 0, data))
	must(t, d.Run([]runtime.Launch{l}))
	clear(data)
	must(t, d.Read(data, ir.Int32, l.Args[2].Buf, 0))
	for i := range n {
		if got, want := binary.LittleEndian.Uint32(data[i*4:]), uint32(i*7+1)*uint32(i); got != want {
			t.Fatalf("element %d is %d, want %d", i, got, want)
		}
	}
	if got := d.Stats().Launches; got != 1 {
		t.Errorf("%d launches counted, want 1", got)
	}
}

// testSizesCompileOnce: after both classes of the inner dim (whole vectors or not) have run, no
// size compiles anything.
func testSizesCompileOnce(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	k := parse(t, "in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = add %0 %1 : float32\nstore 2 %2")
	var first int64
	for i, dims := range [][]int64{{32, 128}, {31, 128}, {7, 128}, {2, 128}, {500, 64}} {
		x := newTrial(k, 2, dims...)
		x.args[1].Stride[0] = 0 // a row, broadcast
		x.fillInputs(rand.New(rand.NewPCG(1, 2)))
		x.check(t, d, ir.Tolerance{})
		if c := d.Stats().Compiles; i == 0 {
			first = c
		} else if c != first {
			t.Errorf("dims %v: %d compiles, %d after the first", dims, c, first)
		}
	}
}

func testTransfers(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	rng := rand.New(rand.NewPCG(3, 4))
	for _, dt := range []ir.DType{ir.Bool, ir.Uint8, ir.Int8, ir.Int16, ir.BFloat16, ir.Int32, ir.Float32} {
		const n = 5 << 20 / 2 // more than one staging buffer
		src := make([]byte, n*dt.Size())
		for i := range src {
			src[i] = byte(rng.Uint32())
			if dt == ir.Bool {
				src[i] &= 1
			}
		}
		buf, err := d.Alloc((n + 3) * int64(d.Caps().ElemSize[dt]))
		must(t, err)
		must(t, d.Write(buf, dt, 3, src))
		got := make([]byte, len(src))
		must(t, d.Read(got, dt, buf, 3))
		if !bytes.Equal(got, src) {
			t.Errorf("%v: read differs from what was written", dt)
		}
		if err := d.Read(got[:dt.Size()], dt, buf, n+3); err == nil {
			t.Errorf("%v: a read past the end succeeded", dt)
		}
		if err := d.Write(buf, dt, 4, src); err == nil {
			t.Errorf("%v: a write past the end succeeded", dt)
		}
		d.Free(buf)
		if err := d.Read(got, dt, buf, 0); err == nil {
			t.Errorf("%v: a read of a freed buffer succeeded", dt)
		}
	}
	buf, err := d.Alloc(64)
	must(t, err)
	for _, dt := range []ir.DType{ir.Float64, ir.Int64, ir.Uint64} {
		if err := d.Write(buf, dt, 0, make([]byte, 8)); !errors.Is(err, ir.ErrUnsupported) {
			t.Errorf("write of %v: %v", dt, err)
		}
		if d.Caps().DTypes.Has(dt) || d.Caps().ElemSize[dt] != 0 {
			t.Errorf("caps claim %v", dt)
		}
	}
}

// testConcurrent uses one device from several goroutines: build, run, transfer, allocate, free.
func testConcurrent(t *testing.T) {
	d := openDevice(t, runtime.Config{})
	k := parse(t, "in 0 : int32\nout 1 : int32\nscalar 0 : int32\n%0 = load 0 : int32\n%1 = scalar 0 : int32\n%2 = add %0 %1 : int32\nstore 1 %2")
	worker := func(seed uint32) error {
		for i := range 30 {
			n := int64(100 + i*int(seed))
			p, err := d.Build(k)
			if err != nil {
				return err
			}
			l := runtime.Launch{Prog: p, Rank: 1, Kept: 1, Args: make([]runtime.Access, 2), Scalars: []uint64{uint64(seed)}}
			l.Dims[0] = n
			for j := range l.Args {
				l.Args[j].Stride[0] = 1
				if l.Args[j].Buf, err = d.Alloc(n * shader.ElemSize); err != nil {
					return err
				}
			}
			data := make([]byte, n*4)
			for j := range n {
				binary.LittleEndian.PutUint32(data[j*4:], uint32(j))
			}
			if err := d.Write(l.Args[0].Buf, ir.Int32, 0, data); err != nil {
				return err
			}
			if err := d.Run([]runtime.Launch{l}); err != nil {
				return err
			}
			if err := d.Read(data, ir.Int32, l.Args[1].Buf, 0); err != nil {
				return err
			}
			for j := range n {
				if got := binary.LittleEndian.Uint32(data[j*4:]); got != uint32(j)+seed {
					return fmt.Errorf("worker %d, element %d is %d", seed, j, got)
				}
			}
			d.Free(l.Args[0].Buf)
			d.Free(l.Args[1].Buf)
		}
		return nil
	}
	errs := make(chan error)
	const workers = 6
	for w := range workers {
		go func() { errs <- worker(uint32(w + 1)) }()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if c := d.Stats().Compiles; c > 2 {
		t.Errorf("%d compiles of one shader, in its two tails at most", c)
	}
}
