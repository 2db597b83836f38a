//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

func open(t testing.TB) *Device {
	t.Helper()
	d, err := Open("")
	if err != nil {
		if strings.Contains(os.Getenv("MILLRACE_REQUIRE"), "webgpu") {
			t.Fatalf("required device: %v", err)
		}
		t.Skipf("no adapter: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, gpurun.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// TestBindingLayout guards the reads of unexported fields in native.go.
func TestBindingLayout(t *testing.T) {
	for _, c := range []struct {
		v      any
		fields []string
	}{
		{wgpu.Buffer{}, []string{"deviceRef", "ref"}},
		{wgpu.Device{}, []string{"ref"}},
	} {
		typ := reflect.TypeOf(c.v)
		if typ.Size() != uintptr(len(c.fields))*reflect.TypeOf(uintptr(0)).Size() || typ.NumField() != len(c.fields) {
			t.Fatalf("%v has %d fields in %d bytes, want %v", typ, typ.NumField(), typ.Size(), c.fields)
		}
		for i, name := range c.fields {
			if f := typ.Field(i); f.Name != name || f.Type.Kind() != reflect.Pointer {
				t.Errorf("%v field %d is %s %v, want pointer %s", typ, i, f.Name, f.Type, name)
			}
		}
	}
}

const double = `
@group(0) @binding(0) var<storage, read_write> b : array<u32>;
@group(0) @binding(1) var<uniform> p : array<vec4<u32>, 1>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id : vec3<u32>) {
	if (id.x < p[0].x) {
		b[id.x] = b[id.x] * 2u + p[0].y;
	}
}
`

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
func setup(t testing.TB, d *Device, n int64) (gpurun.Buffer, gpurun.Buffer, gpurun.Dispatch) {
	t.Helper()
	p, err := d.NewPipeline(double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(n*4, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	u, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Release(); u.Release() })
	return b, u, gpurun.Dispatch{
		Pipe:   p,
		Bind:   []gpurun.Range{{Buf: b, Size: b.Size()}, {Buf: u, Size: 16}},
		Groups: [3]uint32{uint32((n + 63) / 64), 1, 1},
	}
}

func TestRoundTrip(t *testing.T) {
	d := open(t)
	for _, n := range []int64{1, 63, 1000, 3 * chunk / 4} { // the last spans three staging buffers
		b, u, x := setup(t, d, min(n, 65535*64))
		n = min(n, 65535*64)
		if err := d.Write(b, 0, n*4, fillWords(func(i int64) uint32 { return uint32(i) })); err != nil {
			t.Fatal(err)
		}
		// Two dispatches of one submission: the second sees the first's result.
		if err := d.Submit([]gpurun.Dispatch{x, x}, u, words(uint32(n), 1, 0, 0)); err != nil {
			t.Fatal(err)
		}
		seen := int64(0)
		err := d.Read(b, 0, n*4, func(src []byte, at int64) {
			for i := 0; i < len(src); i += 4 {
				k := (at + int64(i)) / 4
				if got := binary.LittleEndian.Uint32(src[i:]); got != uint32(k*4+3) {
					t.Fatalf("n=%d: element %d is %d, want %d", n, k, got, k*4+3)
				}
				seen++
			}
		})
		if err != nil || seen != n {
			t.Fatalf("read %d of %d: %v", seen, n, err)
		}
	}
}

func TestBadSource(t *testing.T) {
	d := open(t)
	for name, src := range map[string]string{
		"syntax":      "fn main( {",
		"type":        "@compute @workgroup_size(1) fn main() { var x : f32 = 1u; }",
		"entry":       "@compute @workgroup_size(1) fn other() {}",
		"group size":  "@compute @workgroup_size(4096) fn main() {}",
		"wrong group": "@group(0) @binding(7) var<storage, read_write> b : array<u32>; @compute @workgroup_size(1) fn main() { b[0] = 1u; }",
	} {
		_, err := d.NewPipeline(src, nil)
		var se *gpurun.SourceError
		if !errors.As(err, &se) {
			t.Errorf("%s: error %v, want a SourceError", name, err)
		}
	}
	if _, err := d.NewPipeline(double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params}); err != nil {
		t.Errorf("a good pipeline after bad ones: %v", err)
	}
}

// TestBadSubmit covers what the native library would end the process for, and
// its neighbours.
func TestBadSubmit(t *testing.T) {
	d := open(t)
	b, u, good := setup(t, d, 1000)
	released, err := d.NewBuffer(4000, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	released.Release()
	released.Release() // twice is harmless
	mappedBuf, err := d.NewBuffer(4000, upload)
	if err != nil {
		t.Fatal(err)
	}
	defer mappedBuf.Release()
	change := func(f func(*gpurun.Dispatch)) gpurun.Dispatch {
		x := good
		x.Bind = append([]gpurun.Range(nil), good.Bind...)
		f(&x)
		return x
	}
	lim := d.Info().Limits
	for name, x := range map[string]gpurun.Dispatch{
		"released":      change(func(x *gpurun.Dispatch) { x.Bind[0].Buf = released }),
		"mapped":        change(func(x *gpurun.Dispatch) { x.Bind[0].Buf = mappedBuf }),
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

func TestOverLimit(t *testing.T) {
	d := open(t)
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

// TestMapUnderGC reads back while the collector runs without pause: the
// binding's own map call fails this.
func TestMapUnderGC(t *testing.T) {
	d := open(t)
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
		if err := d.Write(b, 0, 4, fillWords(func(int64) uint32 { return uint32(i) })); err != nil {
			t.Fatal(err)
		}
		var got uint32
		if err := d.Read(b, 0, 4, func(src []byte, _ int64) { got = binary.LittleEndian.Uint32(src) }); err != nil {
			t.Fatal(err)
		}
		if got != uint32(i) {
			t.Fatalf("read %d, want %d", got, i)
		}
	}
	close(stop)
	<-stopped
}

func TestManyGoroutines(t *testing.T) {
	d := open(t)
	errs := make(chan error)
	const workers = 4
	for w := range workers {
		go func() {
			for i := range 40 {
				// Error scopes belong to the device: without the lock, one
				// goroutine's bad shader would surface in another's call.
				src := double
				if w%2 == 1 {
					src = "fn main( {"
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

const slow = `
@group(0) @binding(0) var<storage, read_write> b : array<u32>;
@group(0) @binding(1) var<uniform> p : array<vec4<u32>, 1>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id : vec3<u32>) {
	var x = b[id.x];
	for (var i = 0u; i < p[0].x; i = i + 1u) {
		x = x * 1664525u + 1013904223u;
		x = x ^ (x >> 7u);
	}
	b[id.x] = x;
}
`

// TestLongQueue submits more work than the native wait would sit out. The
// full five seconds run on request; otherwise a short queue takes the path.
func TestLongQueue(t *testing.T) {
	d := open(t)
	want := 200 * time.Millisecond
	if os.Getenv("MILLRACE_LONG") != "" {
		want = 7 * time.Second
	}
	const n, trips = 1 << 16, 20000
	p, err := d.NewPipeline(slow, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
	if err != nil {
		t.Fatal(err)
	}
	b, u, x := setup(t, d, n)
	x.Pipe, x.Groups[0] = p, n/64
	if err := d.Write(b, 0, n*4, fillWords(func(i int64) uint32 { return uint32(i) })); err != nil {
		t.Fatal(err)
	}
	step := func(count int) time.Duration {
		start := time.Now()
		for range count {
			if err := d.Submit([]gpurun.Dispatch{x}, u, words(trips, 0, 0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
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
	if err := d.Read(b, 5*4, 4, func(src []byte, _ int64) { got = binary.LittleEndian.Uint32(src) }); err != nil {
		t.Fatal(err)
	}
	ref := uint32(5)
	for range trips * (count + 2) {
		ref = ref*1664525 + 1013904223
		ref ^= ref >> 7
	}
	if got != ref {
		t.Errorf("element 5 is %d, want %d", got, ref)
	}
}

func TestLostAndClosed(t *testing.T) {
	d := open(t)
	b, u, x := setup(t, d, 64)
	calls := map[string]func() error{
		"submit": func() error { return d.Submit([]gpurun.Dispatch{x}, u, words(1, 0, 0, 0)) },
		"write":  func() error { return d.Write(b, 0, 4, func([]byte, int64) {}) },
		"upload": func() error { return d.Write(b, 0, 1<<20, func([]byte, int64) {}) },
		"read":   func() error { return d.Read(b, 0, 4, func([]byte, int64) {}) },
		"wait":   d.Wait,
		"buffer": func() error { _, err := d.NewBuffer(16, gpurun.Storage); return err },
		"pipeline": func() error {
			_, err := d.NewPipeline(double, []gpurun.Binding{gpurun.ReadWrite, gpurun.Params})
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

func TestCloseWhileReading(t *testing.T) {
	d := open(t)
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

// TestCloseWaitsForTransfers: the memory that a transfer shows stays mapped until
// its caller is done with it, though Close was called meanwhile.
func TestCloseWaitsForTransfers(t *testing.T) {
	const n = 1 << 20
	for name, transfer := range map[string]func(d *Device, b gpurun.Buffer, touch func([]byte)) error{
		"read": func(d *Device, b gpurun.Buffer, touch func([]byte)) error {
			return d.Read(b, 0, n, func(src []byte, _ int64) { touch(src) })
		},
		"write": func(d *Device, b gpurun.Buffer, touch func([]byte)) error {
			return d.Write(b, 0, n, func(dst []byte, _ int64) { touch(dst) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			b, _, _ := setup(t, d, n)
			closed := make(chan error, 1)
			seen, sum := 0, 0
			err := transfer(d, b, func(mem []byte) {
				go func() { closed <- d.Close() }()
				time.Sleep(50 * time.Millisecond)
				select {
				case <-closed:
					t.Error("closed while memory was in use") // touching it would end the process
				default:
					seen = len(mem)
					for _, x := range mem {
						sum += int(x)
					}
				}
			})
			if !errors.Is(err, gpurun.ErrClosed) && err != nil {
				t.Error(err)
			}
			if seen != n || sum != 0 && name == "read" { // new buffers are zero
				t.Errorf("%d bytes seen, sum %d", seen, sum)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCloseReleases: devices that come and go leave no memory behind.
func TestCloseReleases(t *testing.T) {
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
		d := open(t)
		b, err := d.NewBuffer(bytes, gpurun.Storage)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(b, 0, bytes, func(dst []byte, _ int64) { clear(dst) }); err != nil {
			t.Fatal(err)
		}
		if err := d.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			first = resident()
		}
	}
	if grown := resident() - first; grown > 2*bytes {
		t.Errorf("four devices of %d MiB left %d MiB behind", bytes>>20, grown>>20)
	}
}

// TestLostWhileClosing: a device that is lost while Close waits for a transfer is
// left as it is, at once: the transfer may never end, and uses what would be
// released.
func TestLostWhileClosing(t *testing.T) {
	d := open(t)
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

// TestReleasedPipeline: what is released is gone, once and for all, while work that
// was submitted goes on.
func TestReleasedPipeline(t *testing.T) {
	d := open(t)
	b, u, x := setup(t, d, 64)
	if err := d.Write(b, 0, 64, fillWords(func(i int64) uint32 { return uint32(i) })); err != nil {
		t.Fatal(err)
	}
	if err := d.Submit([]gpurun.Dispatch{x}, u, words(16, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
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
	if len(d.pipelines) != 0 {
		t.Errorf("%d pipelines are left", len(d.pipelines))
	}
}

// TestFailedReads: a read that fails leaves no staging memory behind.
func TestFailedReads(t *testing.T) {
	d := open(t)
	b, _, _ := setup(t, d, 64)
	before := len(d.buffers)
	for range 10 {
		if err := d.Read(b, 1<<20, 64, func([]byte, int64) {}); err == nil {
			t.Fatal("read behind the end")
		}
	}
	if got := len(d.buffers); got > before+maxStaging {
		t.Errorf("%d buffers after failed reads, %d before", got, before)
	}
}

// TestManyDevices: what a device took of the driver goes with it. NVIDIA's gives
// out some dozens; Mesa's has a thread for each.
func TestManyDevices(t *testing.T) {
	threads := func() int {
		list, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Skip(err)
		}
		return len(list)
	}
	one := func() {
		d := open(t)
		b, err := d.NewBuffer(1024, gpurun.Storage)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(b, 0, 4, func(dst []byte, at int64) { dst[0] = 1 }); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	one()
	before := threads()
	for range 80 {
		one()
	}
	if n := threads() - before; n > 40 { // the Go runtime adds a few
		t.Errorf("80 devices left %d threads", n)
	}
}
