//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
)

func open(t testing.TB) *Device {
	t.Helper()
	d, err := Open("")
	if err != nil {
		gputest.Missing(t, "webgpu", err)
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

// TestCloseWaitsForTransfers: the mapped memory of a transfer stays mapped until its caller is done
// with it, even if Close is called meanwhile.
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

// TestReleasedPipelines: no released pipeline is left.
func TestReleasedPipelines(t *testing.T) {
	d := open(t)
	_, _, x := setup(t, d, 64)
	x.Pipe.Release()
	if len(d.pipelines) != 0 {
		t.Errorf("%d pipelines are left", len(d.pipelines))
	}
}

// TestMappedSubmit: submitting a mapped buffer is an error; the native library would end the
// process.
func TestMappedSubmit(t *testing.T) {
	d := open(t)
	_, u, x := setup(t, d, 1000)
	mapped, err := d.NewBuffer(4000, upload)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Release()
	x.Bind[0].Buf = mapped
	if err := d.Submit([]gpurun.Dispatch{x}, u, make([]byte, 16)); err == nil {
		t.Error("a mapped buffer was submitted")
	}
}

// TestDevice: the device keeps the promises of a gpurun.Device.
func TestDevice(t *testing.T) {
	gputest.RunContract(t, gputest.Target{
		Name: "webgpu",
		Open: func(adapter string) (gpurun.Device, error) {
			d, err := Open(adapter)
			if err != nil {
				return nil, err
			}
			return d, nil
		},
		Double: double, Slow: slow,
		Bad: map[string]string{
			"syntax":      "fn main( {",
			"type":        "@compute @workgroup_size(1) fn main() { var x : f32 = 1u; }",
			"entry":       "@compute @workgroup_size(1) fn other() {}",
			"group size":  "@compute @workgroup_size(4096) fn main() {}",
			"wrong group": "@group(0) @binding(7) var<storage, read_write> b : array<u32>; @compute @workgroup_size(1) fn main() { b[0] = 1u; }",
		},
	})
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

// TestManyDevices: closing a device frees the driver's resources. NVIDIA's driver allows some
// dozens of devices; Mesa's has a thread for each.
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
