//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// openEngines opens a device with memory of its own and an engine for copies.
func openEngines(t testing.TB) (*Device, *engines) {
	t.Helper()
	t.Setenv(settingsIn, "apart")
	var e *engines
	t.Cleanup(func() { e.stop() }) // after the device is closed
	d := open(t)
	e = newEngines(t, d)
	t.Cleanup(func() { e.hold(computes, false); e.hold(uploads, false) })
	return d, e
}

// doubling has what a dispatch of the shader double needs.
type doubling struct {
	t     testing.TB
	d     *Device
	pipe  gpurun.Pipeline
	words gpurun.Buffer
}

func newDoubling(t testing.TB, d *Device) *doubling {
	t.Helper()
	p, err := d.NewPipeline(double, doubleBindings)
	if err != nil {
		t.Fatal(err)
	}
	u, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	return &doubling{t, d, p, u}
}

// of is a dispatch that doubles n words of a buffer and adds 1.
func (x *doubling) of(b gpurun.Buffer, off, n int64) (gpurun.Dispatch, []byte) {
	words := binary.LittleEndian.AppendUint32(nil, uint32(n))
	words = append(binary.LittleEndian.AppendUint32(words, 1), make([]byte, 8)...)
	return gpurun.Dispatch{Pipe: x.pipe, Bind: []gpurun.Range{{Buf: b, Off: off, Size: 4 * n}, {Buf: x.words, Size: 16}}, Groups: [3]uint32{uint32(n+63) / 64, 1, 1}}, words
}

func (x *doubling) run(b gpurun.Buffer, off, n int64) {
	x.t.Helper()
	list, words := x.of(b, off, n)
	if err := x.d.Submit([]gpurun.Dispatch{list}, x.words, words); err != nil {
		x.t.Fatal(err)
	}
}

func buffer(t testing.TB, d *Device, size int64) gpurun.Buffer {
	t.Helper()
	b, err := d.NewBuffer(size, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put writes n words of one value.
func put(t testing.TB, d *Device, b gpurun.Buffer, off, n int64, v uint32) {
	t.Helper()
	err := d.Write(b, off, 4*n, func(dst []byte, _ int64) {
		for ; len(dst) > 0; dst = dst[4:] {
			binary.LittleEndian.PutUint32(dst, v)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// get checks n words.
func get(t testing.TB, d *Device, b gpurun.Buffer, off, n int64, want uint32) {
	t.Helper()
	err := d.Read(b, off, 4*n, func(src []byte, at int64) {
		for i := 0; i < len(src); i += 4 {
			if v := binary.LittleEndian.Uint32(src[i:]); v != want {
				t.Errorf("word %d is %d, want %d", (at+int64(i))/4, v, want)
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUploadsBeside: while dispatches are held, uploads end, to other buffers and to that of the
// dispatch, which nevertheless sees the old values. Reads and dispatches that use other buffers do
// not wait for uploads.
func TestUploadsBeside(t *testing.T) {
	d, e := openEngines(t)
	if e == nil {
		t.Skip("the adapter has a second queue, which cannot be held")
	}
	x := newDoubling(t, d)
	const n, some = 5 * chunk / 8, 1 << 20 // words; a write has three parts
	used, idle, loss := buffer(t, d, 4*n), buffer(t, d, 4*n), buffer(t, d, 64)
	put(t, d, used, 0, n, 10)
	put(t, d, loss, 0, 16, 1)
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	before := e.uploaded()
	e.hold(computes, true)
	x.run(used, 0, some) // the step
	x.run(loss, 0, 16)
	put(t, d, used, 0, n, 20) // the next inputs, in place
	put(t, d, idle, 0, n, 30) // and elsewhere
	for range 1000 {
		put(t, d, loss, 32, 8, 7) // many small ones, which follow one another
	}
	e.await(func() bool { return e.bytes[uploads] == before+8*n })
	if d.arrivals.bytes != 4*n || e.pending(computes) < 2 {
		t.Fatalf("%d bytes are in other memory, want %d; %d submissions are held", d.arrivals.bytes, 4*n, e.pending(computes))
	}
	e.hold(uploads, true) // from here on no upload ends
	e.hold(computes, false)
	get(t, d, loss, 0, 8, 3)
	get(t, d, loss, 32, 8, 7)
	put(t, d, idle, 4*n/2, n/4, 40) // of one part, so it needs no memory of the host twice
	get(t, d, loss, 0, 8, 3)        // does not wait for it
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	x.run(loss, 0, 8)
	get(t, d, loss, 0, 8, 7)
	get(t, d, used, 0, n, 20)
	x.run(idle, 0, some) // waits for the upload
	if e.pending(uploads) == 0 {
		t.Error("an upload is not held")
	}
	put(t, d, used, 0, 1<<16, 20) // beside it
	e.hold(uploads, false)
	get(t, d, idle, 0, some, 61)
	get(t, d, idle, 4*some, n/2-some, 30)
	get(t, d, idle, 4*n/2, n/4, 40)
	get(t, d, used, 0, n, 20)
}

// TestUploadsSeen: a dispatch that runs before a write to its buffer sees the old values, one after
// it the new ones.
func TestUploadsSeen(t *testing.T) {
	d, e := openEngines(t)
	x := newDoubling(t, d)
	const n = 1 << 16
	b, kept := buffer(t, d, 4*n), buffer(t, d, 4*n)
	for round := range uint32(4) {
		put(t, d, b, 0, n, 100+round)
		e.hold(computes, true)
		x.run(b, 0, n/2)
		put(t, d, b, 4*n/4, n/4, 5) // in the doubled half
		put(t, d, b, 4*n/4, n/8, 6) // a part of it again
		put(t, d, b, 0, 16, 9)      // a small one, in order
		x.run(b, 4*n/4, n/4)
		put(t, d, kept, 0, n, round)
		e.hold(computes, false)
		get(t, d, b, 0, 16, 9)
		get(t, d, b, 64, n/4-16, 2*(100+round)+1)
		get(t, d, b, 4*n/4, n/8, 13)
		get(t, d, b, 4*n*3/8, n/8, 11)
		get(t, d, b, 4*n/2, n/2, 100+round)
		get(t, d, kept, 0, n, round)
	}
	if d.arrivals.bytes != 0 || len(d.arrivals.landings) != 0 {
		t.Errorf("%d bytes did not arrive", d.arrivals.bytes)
	}
}

// TestUploadsRandom compares random writes, dispatches, recordings, reads and releases with Go's
// memory.
func TestUploadsRandom(t *testing.T) {
	for _, mixed := range []time.Duration{0, 20 * time.Microsecond} {
		d, e := openEngines(t)
		if e != nil {
			e.perDispatch = mixed
		}
		x := newDoubling(t, d)
		const size = 1 << 19
		rng := rand.New(rand.NewPCG(7, uint64(mixed)))
		type pair struct {
			b    gpurun.Buffer
			want []byte
			rec  gpurun.Recording
		}
		fresh := func() *pair { return &pair{b: buffer(t, d, size), want: make([]byte, size)} }
		apply := func(p *pair, off, n int64) {
			for i := off; i < off+4*n; i += 4 {
				binary.LittleEndian.PutUint32(p.want[i:], 2*binary.LittleEndian.Uint32(p.want[i:])+1)
			}
		}
		all := []*pair{fresh(), fresh(), fresh()}
		for _, p := range all {
			put(t, d, p.b, 0, size/4, 0)
		}
		for step := range 600 {
			i := rng.IntN(len(all))
			p := all[i]
			words := rng.Int64N(size/4) + 1
			off := rng.Int64N(size/4-words+1) * 4
			switch rng.IntN(10) {
			case 0, 1, 2, 3:
				if rng.IntN(2) == 0 {
					words = min(words, 64)
				}
				from := rng.Uint32()
				err := d.Write(p.b, off, 4*words, func(dst []byte, at int64) {
					for k := range dst {
						dst[k] = byte(from + uint32(at) + uint32(k)*7)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				for k := range 4 * words {
					p.want[off+k] = byte(from + uint32(k)*7)
				}
			case 4, 5:
				off &^= 255
				x.run(p.b, off, words)
				apply(p, off, words)
			case 6, 7:
				if p.rec == nil {
					one, data := x.of(p.b, 0, size/4)
					if err := d.Write(x.words, 0, 16, func(dst []byte, at int64) { copy(dst, data[at:]) }); err != nil {
						t.Fatal(err)
					}
					var err error
					if p.rec, err = d.Record(gpurun.Range{}, []gpurun.Dispatch{one}); err != nil {
						t.Fatal(err)
					}
				}
				if err := d.Play([]gpurun.Work{{Rec: p.rec}}); err != nil {
					t.Fatal(err)
				}
				apply(p, 0, size/4)
			case 8:
				err := d.Read(p.b, off, 4*words, func(src []byte, at int64) {
					if !bytes.Equal(src, p.want[off+at:][:len(src)]) {
						t.Fatalf("step %d: buffer %d differs", step, i)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			case 9:
				if rng.IntN(4) == 0 {
					p.b.Release()
					if p.rec != nil {
						p.rec.Release()
					}
					all[i] = fresh()
					put(t, d, all[i].b, 0, size/4, 0)
				}
			}
		}
		for i, p := range all {
			if err := d.Read(p.b, 0, size, func(src []byte, at int64) {
				if !bytes.Equal(src, p.want[at:][:len(src)]) {
					t.Errorf("buffer %d differs", i)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if d.arrivals.bytes != 0 || len(d.arrivals.landings)+len(d.arrivals.due) != 0 {
			t.Errorf("%+v", d.arrivals)
		}
		if d.uploads.last == 0 {
			t.Error("nothing went through the queue of uploads")
		}
	}
}

// TestUploadsMany: what waits in other memory is bounded; more is copied in order.
func TestUploadsMany(t *testing.T) {
	d, e := openEngines(t)
	x := newDoubling(t, d)
	const n = 4 << 20 // words
	b := buffer(t, d, 4*n)
	put(t, d, b, 0, n, 1)
	x.run(b, 0, 64)
	for v := range uint32(12) {
		e.hold(computes, v%2 == 0)
		x.run(b, 0, 64)
		go e.hold(computes, false) // a write in order needs staging memory, for which it waits
		put(t, d, b, 0, n, v)
		d.mu.Lock()
		if d.arrivals.bytes > maxLandings {
			t.Errorf("%d bytes", d.arrivals.bytes)
		}
		d.mu.Unlock()
	}
	get(t, d, b, 0, n, 11)
}

// stopping is a device that stops its engines when it is closed.
type stopping struct {
	*Device
	e *engines
}

func (d stopping) Close() error {
	defer d.e.stop()
	return d.Device.Close()
}

// TestUploadsContract: the device with two queues keeps the promises of a gpurun.Device.
func TestUploadsContract(t *testing.T) {
	t.Setenv(settingsIn, "apart")
	with := target
	with.Open = func(adapter string) (gpurun.Device, error) {
		d, err := Open(adapter)
		if err != nil {
			return nil, err
		}
		return stopping{d, newEngines(t, d)}, nil
	}
	gputest.RunContract(t, with)
}

// TestSecondQueue: an engine for copies is preferred to a second queue of the first family.
func TestSecondQueue(t *testing.T) {
	const all = vk.QueueGraphicsBit | vk.QueueComputeBit | vk.QueueTransferBit
	family := func(flags, count uint32) vk.QueueFamilyProperties {
		return vk.QueueFamilyProperties{QueueFlags: flags, QueueCount: count}
	}
	for _, c := range []struct {
		families []vk.QueueFamilyProperties
		want     *place
	}{
		{[]vk.QueueFamilyProperties{family(all, 1)}, nil},
		{[]vk.QueueFamilyProperties{family(all, 16)}, &place{0, 1}},
		{[]vk.QueueFamilyProperties{family(all, 16), family(vk.QueueTransferBit|8, 2), family(vk.QueueComputeBit|vk.QueueTransferBit, 8)}, &place{1, 0}},
		{[]vk.QueueFamilyProperties{family(all, 1), family(vk.QueueTransferBit, 0)}, nil},
		{[]vk.QueueFamilyProperties{family(all, 1), family(vk.QueueComputeBit|vk.QueueTransferBit, 8)}, nil},
	} {
		if got := secondQueue(c.families, 0); (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%+v: %+v, want %+v", c.families, got, c.want)
		}
	}
}

// BenchmarkUploads: an upload of 32 MB, a dispatch that takes about as long, and both, of which the
// dispatch uses other memory. It prints the part of the shorter one that the other hides. The
// environment has the device's settings, such as onequeue.
func BenchmarkUploads(b *testing.B) {
	d := open(b)
	const n, invocations = 8 << 20, 1 << 16
	pipe, err := d.NewPipeline(slow, doubleBindings)
	if err != nil {
		b.Fatal(err)
	}
	words, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		b.Fatal(err)
	}
	in, state := buffer(b, d, 4*n), buffer(b, d, 4*invocations)
	x := []gpurun.Dispatch{{Pipe: pipe, Bind: []gpurun.Range{{Buf: state, Size: 4 * invocations}, {Buf: words, Size: 16}}, Groups: [3]uint32{invocations / 64, 1, 1}}}
	from := bytes.Repeat([]byte{1}, 4*n)
	upload := func() {
		if err := d.Write(in, 0, 4*n, func(dst []byte, at int64) { copy(dst, from[at:]) }); err != nil {
			b.Fatal(err)
		}
	}
	turns := uint32(1)
	dispatch := func() {
		if err := d.Submit(x, words, binary.LittleEndian.AppendUint32(make([]byte, 0, 16), turns)[:16]); err != nil {
			b.Fatal(err)
		}
	}
	wait := func() { // for the dispatch, and for the last bytes of the upload
		for _, r := range []gpurun.Range{{Buf: state}, {Buf: in, Off: 4*n - 4}} {
			if err := d.Read(r.Buf, r.Off, 4, func([]byte, int64) {}); err != nil {
				b.Fatal(err)
			}
		}
	}
	timed := func(calls ...func()) float64 {
		start := time.Now()
		for _, call := range append(calls, wait) {
			call()
		}
		return time.Since(start).Seconds() * 1e3
	}
	least := func(f func()) float64 { return min(timed(f), timed(f), timed(f)) }
	for one := least(upload); turns < 1<<24 && least(dispatch) < one; {
		turns *= 2
	}
	var apart [2]float64
	both := 0.0
	for b.Loop() {
		apart[0] += timed(upload)
		apart[1] += timed(dispatch)
		both += timed(dispatch, upload)
	}
	rounds := float64(b.N)
	b.ReportMetric(apart[0]/rounds, "upload-ms")
	b.ReportMetric(apart[1]/rounds, "dispatch-ms")
	b.ReportMetric(both/rounds, "both-ms")
	b.ReportMetric(100*(apart[0]+apart[1]-both)/min(apart[0], apart[1]), "%-hidden")
}
