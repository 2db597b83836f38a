package gputest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// contract is the suites for the promises of a gpurun.Device.
var contract = []suite{
	{"RoundTrip", testRoundTrip},
	{"OddBytes", testOddBytes},
	{"BadSource", testBadSource},
	{"BadSubmit", testBadSubmit},
	{"OverLimit", testOverLimit},
	{"MapUnderGC", testMapUnderGC},
	{"ManyGoroutines", testManyGoroutines},
	{"LongQueue", testLongQueue},
	{"LostAndClosed", testLostAndClosed},
	{"CloseWhileReading", testCloseWhileReading},
	{"CloseReleases", testCloseReleases},
	{"CloseWhileRunning", testCloseWhileRunning},
	{"Binaries", testBinaries},
	{"LostWhileClosing", testLostWhileClosing},
	{"ReleasedPipeline", testReleasedPipeline},
	{"Recordings", testRecordings},
	{"RecordingsEnd", testRecordingsEnd},
}

// RunContract runs the suites of the Device itself, each as a subtest.
func RunContract(t *testing.T, x Target) {
	under = x
	for _, s := range contract {
		t.Run(s.name, s.run)
	}
}

func openGPU(t testing.TB) gpurun.Device {
	t.Helper()
	d, err := under.Open("")
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, gpurun.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func fillWords(f func(i int64) uint32) func([]byte, int64) {
	return func(dst []byte, at int64) {
		for i := 0; i < len(dst); i += 4 {
			binary.LittleEndian.PutUint32(dst[i:], f((at+int64(i))/4))
		}
	}
}

func words(v ...uint32) []byte {
	var b []byte
	for _, w := range v {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// setup makes a doubling pipeline over n elements and its dispatch.
func setup(t testing.TB, d gpurun.Device, n int64) (gpurun.Buffer, gpurun.Buffer, gpurun.Dispatch) {
	t.Helper()
	p, err := d.NewPipeline(under.Double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
	must(t, err)
	b, err := d.NewBuffer(n*4, gpurun.Storage)
	must(t, err)
	u, err := d.NewBuffer(16, gpurun.Uniform)
	must(t, err)
	t.Cleanup(func() { b.Release(); u.Release() })
	return b, u, gpurun.Dispatch{
		Pipe:   p,
		Bind:   []gpurun.Range{{Buf: b, Size: b.Size()}, {Buf: u, Size: 16}},
		Groups: [3]uint32{uint32((n + 63) / 64), 1, 1},
	}
}

func testRoundTrip(t *testing.T) {
	d := openGPU(t)
	for _, n := range []int64{1, 63, 1000, 6 << 20} { // the last is moved in several parts
		b, u, x := setup(t, d, min(n, 65535*64))
		n = min(n, 65535*64)
		must(t, d.Write(b, 0, n*4, fillWords(func(i int64) uint32 { return uint32(i) })))
		// Two dispatches of one submission: the second sees the first's result.
		must(t, d.Submit([]gpurun.Dispatch{x, x}, u, words(uint32(n), 1, 0, 0)))
		var seen atomic.Int64
		err := d.Read(b, 0, n*4, func(src []byte, at int64) { // perhaps two parts at a time
			for i := 0; i < len(src); i += 4 {
				k := (at + int64(i)) / 4
				if got := binary.LittleEndian.Uint32(src[i:]); got != uint32(k*4+3) {
					t.Errorf("n=%d: element %d is %d, want %d", n, k, got, k*4+3)
					return
				}
				seen.Add(1)
			}
		})
		if err != nil || seen.Load() != n {
			t.Fatalf("read %d of %d: %v", seen.Load(), n, err)
		}
	}
}

// testOddBytes: where shaders can access narrow elements, transfers take any offset and length, and
// leave the bytes around alone.
func testOddBytes(t *testing.T) {
	d := openGPU(t)
	if info := d.Info(); !info.Store16 && !info.Store8 {
		t.Skip("all elements are words")
	}
	const size = 10 << 20 // several parts
	b, err := d.NewBuffer(size, gpurun.Storage)
	must(t, err)
	defer b.Release()
	want := make([]byte, size)
	for i, r := range [][2]int64{{0, size}, {1, 1}, {3, 2}, {7, 9 << 20}, {5, 3}, {size - 1, 1}, {8<<20 - 1, 2}, {0, 1}} {
		off, n := r[0], r[1]
		for j := range n {
			want[off+j] = byte(j*7 + int64(i))
		}
		must(t, d.Write(b, off, n, func(dst []byte, at int64) { copy(dst, want[off+at:]) }))
	}
	for _, r := range [][2]int64{{0, size}, {1, 1}, {2, 5}, {3, size - 3}, {size - 3, 3}} {
		got := make([]byte, r[1])
		must(t, d.Read(b, r[0], r[1], func(src []byte, at int64) { copy(got[at:], src) }))
		if !bytes.Equal(got, want[r[0]:][:r[1]]) {
			t.Errorf("%d bytes at %d are not those that were written", r[1], r[0])
		}
	}
}

func testBadSource(t *testing.T) {
	d := openGPU(t)
	for name, src := range under.Bad {
		_, err := d.NewPipeline(src, nil)
		var se *gpurun.SourceError
		if !errors.As(err, &se) {
			t.Errorf("%s: error %v, want a SourceError", name, err)
		}
	}
	if _, err := d.NewPipeline(under.Double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params}); err != nil {
		t.Errorf("a good pipeline after bad ones: %v", err)
	}
}

// testBadSubmit covers calls for which the native library would end the process, and similar ones.
func testBadSubmit(t *testing.T) {
	d := openGPU(t)
	b, u, good := setup(t, d, 1000)
	released, err := d.NewBuffer(4000, gpurun.Storage)
	must(t, err)
	released.Release()
	released.Release() // twice is harmless
	change := func(f func(*gpurun.Dispatch)) gpurun.Dispatch {
		x := good
		x.Bind = append([]gpurun.Range(nil), good.Bind...)
		f(&x)
		return x
	}
	lim := d.Info().Limits
	for name, x := range map[string]gpurun.Dispatch{
		"released":      change(func(x *gpurun.Dispatch) { x.Bind[0].Buf = released }),
		"past the end":  change(func(x *gpurun.Dispatch) { x.Bind[0].Size = 1 << 20 }),
		"empty":         change(func(x *gpurun.Dispatch) { x.Bind[0].Size = 0 }),
		"unaligned":     change(func(x *gpurun.Dispatch) { x.Bind[0].Off, x.Bind[0].Size = 4, 16 }),
		"groups":        change(func(x *gpurun.Dispatch) { x.Groups[0] = uint32(lim.Groups) + 1 }),
		"few bindings":  change(func(x *gpurun.Dispatch) { x.Bind = x.Bind[:1] }),
		"no pipeline":   change(func(x *gpurun.Dispatch) { x.Pipe = nil }),
		"wrong usage":   change(func(x *gpurun.Dispatch) { x.Bind[0], x.Bind[1].Size = x.Bind[1], 16 }),
		"no buffer":     change(func(x *gpurun.Dispatch) { x.Bind[0].Buf = nil }),
		"params as rw2": change(func(x *gpurun.Dispatch) { x.Bind[1].Buf = b }),
	} {
		if err := d.Submit([]gpurun.Dispatch{x}, u, words(1, 0, 0, 0)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := d.Submit([]gpurun.Dispatch{good}, u, words(1, 0, 0, 0)); err != nil {
		t.Errorf("a good submission after bad ones: %v", err)
	}
}

func testOverLimit(t *testing.T) {
	d := openGPU(t)
	lim := d.Info().Limits
	if lim.Binding < 128<<20 {
		t.Errorf("binding limit %d: the adapter's limits did not reach the device", lim.Binding)
	}
	_, err := d.NewBuffer(lim.Buffer+16, gpurun.Storage)
	if !errors.Is(err, gpurun.ErrMemory) {
		t.Errorf("buffer above the limit: %v", err)
	}
	if lim.Binding+16 > lim.Buffer {
		t.Skip("a binding may span a whole buffer here")
	}
	b, u, x := setup(t, d, (lim.Binding+16)/4)
	if err := d.Submit([]gpurun.Dispatch{x}, u, words(1, 0, 0, 0)); err == nil {
		t.Error("a binding above the limit was accepted")
	}
	b.Release()
}

// testMapUnderGC reads back while the collector runs without pause: the binding's own map call
// fails this.
func testMapUnderGC(t *testing.T) {
	d := openGPU(t)
	b, _, _ := setup(t, d, 64)
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				goruntime.GC()
			}
		}
	}()
	for i := range 200 {
		must(t, d.Write(b, 0, 4, fillWords(func(int64) uint32 { return uint32(i) })))
		var got uint32
		must(t, d.Read(b, 0, 4, func(src []byte, _ int64) { got = binary.LittleEndian.Uint32(src) }))
		if got != uint32(i) {
			t.Fatalf("read %d, want %d", got, i)
		}
	}
	close(stop)
	<-stopped
}

func testManyGoroutines(t *testing.T) {
	d := openGPU(t)
	errs := make(chan error)
	const workers = 4
	for w := range workers {
		go func() {
			for i := range 40 {
				// Error scopes belong to the device: without the lock, one goroutine's bad shader
				// would be reported to another's call.
				src := under.Double
				if w%2 == 1 {
					src = under.Bad["syntax"]
				}
				p, err := d.NewPipeline(src, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
				if bad := err != nil; bad != (w%2 == 1) {
					errs <- errors.Join(errors.New("wrong outcome"), err)
					return
				}
				_, _ = p, i
			}
			errs <- nil
		}()
	}
	for range workers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// testLongQueue submits more work than the native wait's timeout covers. The full five seconds run
// with MILLRACE_LONG; otherwise a short queue takes the same path.
func testLongQueue(t *testing.T) {
	d := openGPU(t)
	want := 200 * time.Millisecond
	if os.Getenv("MILLRACE_LONG") != "" {
		want = 7 * time.Second
	}
	const n, trips = 1 << 16, 20000
	p, err := d.NewPipeline(under.Slow, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
	must(t, err)
	b, u, x := setup(t, d, n)
	x.Pipe, x.Groups[0] = p, n/64
	must(t, d.Write(b, 0, n*4, fillWords(func(i int64) uint32 { return uint32(i) })))
	step := func(count int) time.Duration {
		start := time.Now()
		for range count {
			must(t, d.Submit([]gpurun.Dispatch{x}, u, words(trips, 0, 0, 0)))
		}
		must(t, d.Wait())
		return time.Since(start)
	}
	step(1) // compiles
	one := step(1)
	count := int(want/one) + 1
	took := step(count)
	t.Logf("%d submissions took %v", count, took)
	if took < one*time.Duration(count)/4 {
		t.Errorf("%d submissions of %v each were waited for %v only", count, one, took)
	}
	var got uint32
	must(t, d.Read(b, 5*4, 4, func(src []byte, _ int64) { got = binary.LittleEndian.Uint32(src) }))
	ref := uint32(5)
	for range trips * (count + 2) {
		ref = ref*1664525 + 1013904223
		ref ^= ref >> 7
	}
	if got != ref {
		t.Errorf("element 5 is %d, want %d", got, ref)
	}
}

func testLostAndClosed(t *testing.T) {
	d := openGPU(t)
	b, u, x := setup(t, d, 64)
	calls := map[string]func() error{
		"submit": func() error { return d.Submit([]gpurun.Dispatch{x}, u, words(1, 0, 0, 0)) },
		"write":  func() error { return d.Write(b, 0, 4, func([]byte, int64) {}) },
		"upload": func() error { return d.Write(b, 0, 1<<20, func([]byte, int64) {}) },
		"read":   func() error { return d.Read(b, 0, 4, func([]byte, int64) {}) },
		"wait":   d.Wait,
		"buffer": func() error { _, err := d.NewBuffer(16, gpurun.Storage); return err },
		"pipeline": func() error {
			_, err := d.NewPipeline(under.Double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
			return err
		},
	}
	d.Lose(errors.New("test"))
	for name, call := range calls {
		if err := call(); !errors.Is(err, gpurun.ErrLost) {
			t.Errorf("%s on a lost device: %v", name, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("close of a lost device: %v", err)
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, gpurun.ErrClosed) {
			t.Errorf("%s on a closed device: %v", name, err)
		}
	}
}

func testCloseWhileReading(t *testing.T) {
	d := openGPU(t)
	b, _, _ := setup(t, d, 1<<20)
	done := make(chan error)
	for range 3 {
		go func() {
			for {
				if err := d.Read(b, 0, 1<<20, func([]byte, int64) {}); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for range 3 {
		if err := <-done; !errors.Is(err, gpurun.ErrClosed) {
			t.Errorf("read across Close: %v", err)
		}
	}
}

// testCloseReleases: opening and closing devices leaves no memory behind.
func testCloseReleases(t *testing.T) {
	resident := func() int64 {
		b, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip("no /proc here")
		}
		var size, pages int64
		if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
			t.Fatal(err)
		}
		return pages * int64(os.Getpagesize())
	}
	const bytes = 64 << 20
	var first int64
	for i := range 6 {
		d := openGPU(t)
		b, err := d.NewBuffer(bytes, gpurun.Storage)
		must(t, err)
		must(t, d.Write(b, 0, bytes, func(dst []byte, _ int64) { clear(dst) }))
		must(t, d.Wait())
		must(t, d.Close())
		if i == 1 {
			first = resident()
		}
	}
	if grown := resident() - first; grown > 2*bytes {
		t.Errorf("four devices of %d MiB left %d MiB behind", bytes>>20, grown>>20)
	}
}

// testLostWhileClosing: if a device is lost while Close waits for a transfer, Close leaves the
// device as it is, at once: the transfer may never end, and uses what Close would release.
func testLostWhileClosing(t *testing.T) {
	d := openGPU(t)
	b, _, _ := setup(t, d, 1<<20)
	closed := make(chan error, 1)
	err := d.Read(b, 0, 1<<20, func([]byte, int64) {
		go func() { closed <- d.Close() }()
		time.Sleep(20 * time.Millisecond)
		d.Lose(errors.New("test"))
		select {
		case err := <-closed:
			closed <- err
		case <-time.After(5 * time.Second):
			t.Error("Close waits for a device that is lost")
		}
	})
	if err != nil && !errors.Is(err, gpurun.ErrLost) && !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// testReleasedPipeline: a released pipeline cannot be used any more, while submitted work
// continues.
func testReleasedPipeline(t *testing.T) {
	d := openGPU(t)
	b, u, x := setup(t, d, 64)
	must(t, d.Write(b, 0, 64, fillWords(func(i int64) uint32 { return uint32(i) })))
	must(t, d.Submit([]gpurun.Dispatch{x}, u, words(16, 0, 0, 0)))
	x.Pipe.Release()
	x.Pipe.Release()
	if err := d.Submit([]gpurun.Dispatch{x}, u, words(16, 0, 0, 0)); err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("submit: %v", err)
	}
	if err := d.Read(b, 0, 64, func(src []byte, _ int64) {
		if got := binary.LittleEndian.Uint32(src[60:]); got != 30 {
			t.Errorf("%d, want 30", got)
		}
	}); err != nil {
		t.Error(err)
	}
}

// testCloseWhileRunning: Close waits for submitted work.
func testCloseWhileRunning(t *testing.T) {
	d := openGPU(t)
	const n = 1 << 16
	p, err := d.NewPipeline(under.Slow, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
	must(t, err)
	_, u, x := setup(t, d, n)
	x.Pipe, x.Groups[0] = p, n/64
	for range 3 {
		must(t, d.Submit([]gpurun.Dispatch{x}, u, words(1000, 0, 0, 0)))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Submit([]gpurun.Dispatch{x}, u, words(1, 0, 0, 0)); !errors.Is(err, gpurun.ErrClosed) {
		t.Errorf("submit after Close: %v", err)
	}
}

// testBinaries: a driver's binary makes a pipeline again, also on another device; invalid binaries
// are rejected.
func testBinaries(t *testing.T) {
	d := openGPU(t)
	k, ok := d.(gpurun.Keeper)
	if !ok {
		t.Skip("the API hands nothing out")
	}
	bindings := []gpurun.Binding{gpurun.ReadWrite, gpurun.Params}
	_, _, x := setup(t, d, 64)
	data, err := k.Binary(x.Pipe)
	must(t, err)
	if len(data) == 0 {
		t.Skip("the driver hands nothing out")
	}
	other := openGPU(t)
	b, u, y := setup(t, other, 64)
	y.Pipe, err = other.(gpurun.Keeper).NewPipelineOf(data, bindings)
	must(t, err)
	must(t, other.Write(b, 0, 64, fillWords(func(i int64) uint32 { return uint32(i) })))
	must(t, other.Submit([]gpurun.Dispatch{y}, u, words(16, 5, 0, 0)))
	if err := other.Read(b, 0, 64, func(src []byte, _ int64) {
		if got := binary.LittleEndian.Uint32(src[60:]); got != 35 {
			t.Errorf("%d, want 35", got)
		}
	}); err != nil {
		t.Error(err)
	}
	other4 := slices.Clone(data)
	other4[0] ^= 0x55
	for name, bad := range map[string][]byte{"nothing": nil, "a word": data[:4], "another format": other4} {
		if _, err := k.NewPipelineOf(bad, bindings); !errors.Is(err, gpurun.ErrBinary) {
			t.Errorf("%s: %v", name, err)
		}
	}
	x.Pipe.Release()
	if data, err := k.Binary(x.Pipe); len(data) > 0 || err != nil {
		t.Errorf("of a released pipeline: %d bytes, %v", len(data), err)
	}
}
