package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/apitest"
	"github.com/millrace-go/millrace/internal/testing/progen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// recorder is the device as a gpurun.Recorder; tests that need one are skipped if it is none.
func recorder(t testing.TB, d gpurun.Device) gpurun.Recorder {
	t.Helper()
	r, ok := d.(gpurun.Recorder)
	if !ok {
		t.Skip("the device has no recordings")
	}
	return r
}

// testRecordings: a Recording does what Submit of its list does, as often as it is played, among
// other work. It refuses to run with what was released.
func testRecordings(t *testing.T) {
	d := openGPU(t)
	rec := recorder(t, d)
	const n, many = 1000, 2500
	b, u, x := setup(t, d, n)
	flags, err := d.NewBuffer(64, gpurun.Storage)
	must(t, err)
	fill := func(buf gpurun.Buffer, size int64, v uint32) {
		must(t, d.Write(buf, 0, size, fillWords(func(int64) uint32 { return v })))
	}
	first := func(buf gpurun.Buffer) (w uint32) {
		must(t, d.Read(buf, 0, 4, func(src []byte, _ int64) { w = binary.LittleEndian.Uint32(src) }))
		return w
	}
	must(t, d.Write(u, 0, 16, func(dst []byte, _ int64) { copy(dst, words(n, 1, 0, 0)) }))
	list := []gpurun.Dispatch{x, x}
	two, err := rec.Record(gpurun.Range{Buf: flags, Size: 32}, list)
	must(t, err)
	list[0], list[1] = gpurun.Dispatch{}, gpurun.Dispatch{} // the list is the caller's
	long, err := rec.Record(gpurun.Range{}, slices.Repeat([]gpurun.Dispatch{x}, many))
	must(t, err)
	for round := range 6 {
		fill(b, n*4, 5)
		fill(flags, 64, 7)
		must(t, rec.Play([]gpurun.Work{{Rec: two}}))
		// While the first may run, recorded work among other work.
		once := []gpurun.Dispatch{x}
		must(t, rec.Play([]gpurun.Work{{List: once}, {Rec: two}, {Zero: gpurun.Range{Buf: flags, Off: 48, Size: 16}, List: once}, {Rec: two}}))
		want := uint32(5<<8 + 255)
		if round%2 == 0 {
			must(t, d.Submit([]gpurun.Dispatch{x}, u, nil))
			want = 2*want + 1
		}
		if got := first(b); got != want {
			t.Fatalf("round %d: %d, want %d", round, got, want)
		}
		err := d.Read(flags, 0, 64, func(src []byte, _ int64) {
			for i := range 16 {
				if v := binary.LittleEndian.Uint32(src[4*i:]); (v == 0) != (i < 8 || i >= 12) {
					t.Errorf("word %d of the zeros is %d", i, v)
				}
			}
		})
		must(t, err)
	}
	for _, w := range []gpurun.Work{{Rec: long}, {List: slices.Repeat([]gpurun.Dispatch{x}, many)}} {
		fill(b, n*4, 5)
		must(t, rec.Play([]gpurun.Work{w}))
		if got := first(b); got != 1<<32-1 { // after 32 or more
			t.Errorf("%d dispatches: %d", many, got)
		}
	}
	if err := rec.Play(nil); err != nil {
		t.Errorf("no work: %v", err)
	}
	long.Release()
	long.Release()
	if err := rec.Play([]gpurun.Work{{Rec: long}}); !errors.Is(err, gpurun.ErrStale) {
		t.Errorf("after Release: %v", err)
	}
	bad := x
	bad.Groups[0] = uint32(d.Info().Limits.Groups) + 1
	if _, err := rec.Record(gpurun.Range{}, []gpurun.Dispatch{x, bad}); err == nil {
		t.Error("a dispatch above the limits was recorded")
	}
	flags.Release()
	if err := rec.Play([]gpurun.Work{{Rec: two}}); !errors.Is(err, gpurun.ErrStale) {
		t.Errorf("with a released buffer: %v", err)
	}
	one, err := rec.Record(gpurun.Range{}, []gpurun.Dispatch{x})
	must(t, err)
	x.Pipe.Release()
	if err := rec.Play([]gpurun.Work{{Rec: one}}); !errors.Is(err, gpurun.ErrStale) {
		t.Errorf("with a released pipeline: %v", err)
	}
	d.Lose(errors.New("a test"))
	if err := rec.Play([]gpurun.Work{{Rec: one}}); !errors.Is(err, gpurun.ErrLost) {
		t.Errorf("on a lost device: %v", err)
	}
	one.Release()
}

// testRecordingsEnd: Close waits for submitted recordings and frees the others.
func testRecordingsEnd(t *testing.T) {
	d := openGPU(t)
	rec := recorder(t, d)
	const n = 1 << 16
	b, u, x := setup(t, d, n)
	must(t, d.Write(u, 0, 16, func(dst []byte, _ int64) { copy(dst, words(n, 1, 0, 0)) }))
	r, err := rec.Record(gpurun.Range{}, slices.Repeat([]gpurun.Dispatch{x}, 100))
	must(t, err)
	for range 20 {
		must(t, rec.Play([]gpurun.Work{{Rec: r}}))
	}
	r.Release()
	b.Release()
	must(t, d.Close())
	if err := rec.Play([]gpurun.Work{{Rec: r}}); !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	r.Release()
}

// Kernels of random lists, over rows of listCols elements. Inputs come first; the last operand is the
// output.
const listRows, listCols = 24, 40

var listKernels = []struct {
	src  string
	same int // the operand whose memory the output uses, -1 for none
}{
	{"in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 0 : int32\n%1 = load 1 : int32\n%2 = sub %0 %1 : int32\nstore 2 %2", -1},
	{"in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 0 : int32\n%1 = load 1 : int32\n%2 = xor %0 %1 : int32\nstore 2 %2", 0},
	{"in 0 : int32\nout 1 : int32\n%0 = load 0 : int32\n%1 = cumsum %0 : int32\n%2 = max %1 : int32\n%3 = sub %2 %0 : int32\nstore 1 %3", -1},
	{"in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 0 : int32\n%1 = loadat 1 error %0 : int32\nstore 2 %1", -1},
	{"in 0 : int32\nin 1 : int32\nout 2 : int32\n%0 = load 0 : int32\n%1 = loadat 1 clamp %0 : int32\nstore 2 %1", -1},
	{"in 0 : int32 row\nin 1 : int32\nin 2 : int32\nout 3 : int32 row\n%0 = load 1 : int32\n%1 = load 2 : int32\n%2 = scatter 0 error add %0 %1 : int32\nstore 3 %2", 0},
	{"in 0 : int32 row\nin 1 : int32\nin 2 : int32\nout 3 : int32 row\n%0 = load 1 : int32\n%1 = load 2 : int32\n%2 = scatter 0 drop max %0 %1 : int32\nstore 3 %2", -1},
	{"in 0 : int32\nout 1 : int32\n%0 = load 0 : int32\n%1 = sort %0 : int32\nstore 1 %1", -1},
}

// side is a device with its memory for one of several equal lists.
type side struct {
	dev  *device
	bufs []runtime.Buffer
	list []runtime.Launch
}

// randomList runs a random list, prepared and by Run, beside the same list on a device that prepares
// nothing. All have the same values and the same errors, whatever buffers the lists are given.
func randomList(d, plain *device, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 9))
	const elems, bufs, indices = listRows * listCols, 7, 2
	bytesOf := func() []byte { return make([]byte, elems*4) }
	const prepared, eager, reference = 0, 1, 2
	sides := [...]side{prepared: {dev: d}, eager: {dev: d}, reference: {dev: plain}}
	for i := range sides {
		for range bufs {
			b, err := sides[i].dev.Alloc(elems * shader.ElemSize)
			if err != nil {
				return err
			}
			sides[i].bufs = append(sides[i].bufs, b)
		}
	}
	defer func() {
		for i := range sides {
			for _, b := range sides[i].bufs {
				sides[i].dev.Free(b)
			}
		}
	}()
	// The first buffers hold indices and are never written.
	write := func(i int, data []byte) (err error) {
		for _, x := range sides {
			err = errors.Join(err, x.dev.Write(x.bufs[i], ir.Int32, 0, data))
		}
		return err
	}
	renew := func(far bool) error {
		for i := range bufs {
			data := bytesOf()
			for j := 0; j < len(data); j += 4 {
				v := rng.Uint32()
				if i < indices {
					v %= listCols
				}
				binary.LittleEndian.PutUint32(data[j:], v)
			}
			if far && i < indices {
				binary.LittleEndian.PutUint32(data[4*rng.IntN(elems):], uint32(listCols+rng.IntN(9)))
			}
			if err := write(i, data); err != nil {
				return err
			}
		}
		return nil
	}
	if err := renew(false); err != nil {
		return err
	}
	places := make([][]runtime.Place, bufs)
	for at := range 1 + rng.IntN(8) {
		c := listKernels[rng.IntN(len(listKernels))]
		k, err := codegen.Parse(c.src)
		if err != nil {
			return err
		}
		progs := [2]runtime.Program{}
		for i, d := range []*device{d, plain} {
			if progs[i], err = d.Build(k); err != nil {
				return err
			}
		}
		l := runtime.Launch{Rank: 2, Kept: 2}
		l.Dims[0], l.Dims[1] = listRows, listCols
		if k.HasRows() {
			l.Kept = 1
		}
		index, axis := -1, []int(nil) // the operand with indices, and those with an axis of them
		switch {
		case strings.Contains(c.src, "loadat"):
			index, axis = 0, []int{1}
		case strings.Contains(c.src, "scatter"):
			index, axis, l.Kept = 1, []int{0, 3}, 1
		}
		order := rng.Perm(bufs - indices) // operands differ, as far as the kernel does not say otherwise
		var used []int
		for i := range k.Operands {
			slot := indices + order[i]
			switch {
			case i == index:
				slot = rng.IntN(indices)
			case i == len(k.Operands)-1 && c.same >= 0:
				slot = used[c.same]
			}
			used = append(used, slot)
			a := runtime.Access{}
			a.Stride[0], a.Stride[1] = listCols, 1
			if slices.Contains(axis, i) {
				a.Stride[1], a.IndexStride, a.IndexSize = 0, 1, listCols
			}
			l.Args = append(l.Args, a)
			places[slot] = append(places[slot], runtime.Place{Launch: int32(at), Arg: int32(i)})
		}
		for i := range sides {
			l.Prog, l.Args = progs[i/reference], slices.Clone(l.Args)
			for j, slot := range used {
				l.Args[j].Buf = sides[i].bufs[slot]
			}
			sides[i].list = append(sides[i].list, l)
		}
	}
	p := d.Prepare(sides[prepared].list, nil)
	if p == nil {
		return errors.New("the list was not prepared")
	}
	defer p.Close()
	var old [2]runtime.Buffer // alternate with the buffers of the slot alternate
	alternate := indices + rng.IntN(bufs-indices)
	defer func() {
		for _, b := range old {
			d.Free(b)
		}
	}()
	replace := func(side, slot int, fresh runtime.Buffer) error {
		data, x := bytesOf(), &sides[side]
		if err := errors.Join(d.Read(data, ir.Int32, x.bufs[slot], 0), d.Write(fresh, ir.Int32, 0, data)); err != nil {
			return err
		}
		x.bufs[slot] = fresh
		for _, at := range places[slot] {
			x.list[at.Launch].Args[at.Arg].Buf = fresh
		}
		if side == prepared && !p.Set(places[slot], fresh) {
			return errors.New("a buffer was refused")
		}
		return nil
	}
	for round := range 24 {
		switch rng.IntN(4) {
		case 0: // a buffer that alternates with another one
			for side := range old {
				if old[side] == nil {
					b, err := d.Alloc(elems * shader.ElemSize)
					if err != nil {
						return err
					}
					old[side] = b
				}
				was := sides[side].bufs[alternate]
				if err := replace(side, alternate, old[side]); err != nil {
					return err
				}
				old[side] = was
			}
		case 1: // a new one, after the old one and all pooled memory was freed
			slot, side := rng.IntN(bufs), rng.IntN(len(old))
			b, err := d.Alloc((elems + rng.Int64N(40)) * shader.ElemSize)
			if err != nil {
				return err
			}
			was := sides[side].bufs[slot]
			if err := replace(side, slot, b); err != nil {
				return err
			}
			d.Free(was)
			if big, err := d.Alloc(3 << 20); err == nil { // above the limit with what is pooled
				d.Free(big)
			}
		}
		far := rng.IntN(6) == 0
		if err := renew(far); err != nil {
			return err
		}
		for again := range 1 + rng.IntN(3) {
			want := plain.Run(sides[reference].list)
			for side, got := range []error{p.Run(), d.Run(sides[eager].list)} {
				var le *runtime.LaunchError
				if fmt.Sprint(got) != fmt.Sprint(want) || want != nil && !errors.As(got, &le) {
					return fmt.Errorf("round %d, run %d of list %d: error %v, want %v", round, again, side, got, want)
				}
			}
			if want != nil {
				break
			}
		}
		if far {
			if err := renew(false); err != nil {
				return err
			}
			continue
		}
		for i := range bufs {
			var data [len(sides)][]byte
			for j, x := range sides {
				data[j] = bytesOf()
				if err := x.dev.Read(data[j], ir.Int32, x.bufs[i], 0); err != nil {
					return err
				}
				if !bytes.Equal(data[j], data[0]) {
					return fmt.Errorf("round %d: buffer %d of list %d differs", round, i, j)
				}
			}
		}
	}
	return nil
}

// testPrepared compares random lists, prepared and run by Run, with lists that cannot be prepared, from several goroutines, with faults, buffers that alternate and memory that is freed.
func testPrepared(t *testing.T) {
	d := openDevice(t, runtime.Config{MemoryLimit: 4 << 20})
	if _, ok := openGPU(t).(gpurun.Recorder); !ok {
		t.Skip("the device has no recordings")
	}
	plain := openAs(t, func(i *gpurun.Info) { i.Skips = false }) // and it is no Recorder
	n := programs(t, 24)
	var wg sync.WaitGroup
	for w := range uint64(3) {
		wg.Go(func() {
			for seed := w; seed < n; seed += 3 {
				if err := randomList(d, plain, seed); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			}
		})
	}
	wg.Wait()
	s := d.Stats()
	if n := plain.Stats(); n.Prepared != 0 || n.Waits == 0 {
		t.Errorf("the reference prepared %d launches and waited %d times", n.Prepared, n.Waits)
	}
	if s.Prepared < s.Launches/2 || s.Recorded > s.Prepared || s.Waits == 0 || s.AllocBytes != 0 {
		t.Errorf("%d of %d launches ran prepared, %d recordings, %d waits, %d bytes are left", s.Prepared, s.Launches, s.Recorded, s.Waits, s.AllocBytes)
	}
	t.Logf("%d of %d launches ran prepared, %d recordings, %d waits", s.Prepared, s.Launches, s.Recorded, s.Waits)
}

// testEngineRecorded runs random programs as Recordings, which give the oracle's bits for other
// arguments each time, with results that stay or are released, and from several goroutines.
func testEngineRecorded(t *testing.T) {
	d := openEngine(t)
	n := programs(t, 24)
	randomPrograms(t, n, 5<<32, progen.Config{Ops: 14, MaxElems: 600, DTypes: shader.DTypes &^ ir.Floats}, func(prog *ir.Graph, seed uint64) error {
		return recordedProgram(d, prog, seed)
	})
	noFallbacks(t, d)
	s := d.Stats()
	if _, ok := openGPU(t).(gpurun.Recorder); ok && (s.Runtime.Prepared < 10*int64(n) || s.Runtime.Recorded < int64(n)/2) {
		t.Errorf("%d of %d launches of %d programs ran prepared, %d recordings", s.Runtime.Prepared, s.Runtime.Launches, n, s.Runtime.Recorded)
	}
	t.Logf("%d of %d launches ran prepared, %d recordings", s.Runtime.Prepared, s.Runtime.Launches, s.Runtime.Recorded)
}

func recordedProgram(d *millrace.Device, prog *ir.Graph, seed uint64) error {
	rec := millrace.NewRecording(func(sc *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		r := apitest.NewRunner(sc, prog, nil)
		r.Tensors = slices.Clone(in)
		for i := range prog.Nodes {
			r.Step(i)
		}
		var out []*millrace.Tensor
		for _, id := range prog.Outputs {
			out = append(out, r.Tensors[id])
		}
		return out, nil
	})
	run := func(s *millrace.Stream, seed uint64, rng *rand.Rand, keeps int) error {
		inputs := progen.Inputs(prog, seed)
		want, err := ir.EvalTensors(prog, inputs)
		if err != nil {
			return fmt.Errorf("oracle: %w", err)
		}
		in := make([]*millrace.Tensor, len(inputs))
		for i, data := range inputs {
			in[i] = apitest.FromBytes(s, prog.Inputs[i], data)
			if rng.IntN(8) >= keeps {
				defer in[i].Release()
			}
		}
		out, err := rec.RunWith(nil, millrace.RunOptions{On: s}, in...)
		if err != nil {
			return err
		}
		for i, id := range prog.Outputs {
			got, err := apitest.Bytes(out[i])
			if err == nil {
				err = apitest.Differ(want[id].TensorType, got, want[id].Data)
			}
			if err != nil {
				return fmt.Errorf("result %d: %w", i, err)
			}
			if rng.IntN(8) >= keeps { // its memory is free for the next run
				defer out[i].Release()
			}
		}
		return nil
	}
	several := func(who, keeps int) error {
		s, rng := d.NewStream(), rand.New(rand.NewPCG(seed, uint64(who)))
		for i := range 10 {
			if err := run(s, seed+uint64(100*who+i%3), rng, keeps); err != nil {
				return fmt.Errorf("run %d of %d: %w", i, who, err)
			}
		}
		return nil
	}
	if err := several(0, 0); err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		wg.Go(func() { errs[w] = several(w+1, 2) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// testEngineRecordedFaults: an index out of range in a Recording fails its run, with the line of the
// op, and no other.
func testEngineRecordedFaults(t *testing.T) {
	d := openEngine(t)
	rec := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x := in[0].MulScalar(2)
		return []*millrace.Tensor{x.Take(in[1], 0).AddScalar(1), x.SubScalar(3)}, nil
	})
	for i := range 30 {
		x := millrace.FromSliceOn(d, []float32{1, 2, float32(i)}, 3)
		at := []int32{2, 0}
		if i%5 == 4 {
			at[1] = int32(i)
		}
		got, err := rec.Run(nil, x, millrace.FromSliceOn(d, at, 2))
		if i%5 == 4 {
			if err == nil {
				err = got[0].Eval()
			}
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("index %d,", i)) || !strings.Contains(err.Error(), "recordings.go") {
				t.Errorf("run %d: %v", i, err)
			}
			continue
		}
		must(t, err)
		if v := values(t, got[0]); v[0] != float32(2*i+1) || v[1] != 3 {
			t.Errorf("run %d: %v", i, v)
		}
		if v := values(t, got[1]); v[0] != -1 || v[2] != float32(2*i-3) {
			t.Errorf("run %d: beside it %v", i, v)
		}
	}
	if s := d.Stats().Runtime; s.Prepared == 0 {
		if _, ok := openGPU(t).(gpurun.Recorder); ok {
			t.Error("nothing ran prepared")
		}
	}
}
