//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/internal/gputest"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// The tests of this package run under the validation layers, if these are installed, and must not
// cause a message.
var messages = make(chan string, 100)

func TestMain(m *testing.M) {
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.bench=") }) {
		os.Exit(m.Run()) // without layers, which take time
	}
	Validate(func(message string) {
		fmt.Fprintln(os.Stderr, message)
		select {
		case messages <- message:
		default:
		}
	})
	code := m.Run()
	if len(messages) > 0 {
		fmt.Fprintf(os.Stderr, "the validation layers have %d messages\n", len(messages))
		code = 1
	}
	os.Exit(code)
}

func open(t testing.TB) *Device {
	t.Helper()
	d, err := Open("")
	if err != nil {
		gputest.Missing(t, "vulkan", err)
	}
	if !Validated() && os.Getenv("CI") == "true" {
		t.Fatal("no validation layers (Debian: vulkan-validationlayers)")
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, gpurun.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

const double = `write 0 b u32;
words 1 1;
main invocations 64 {
	if (id.x < p[0].x) {
		b[id.x] = b[id.x] * 2u + p[0].y;
	}
}
`

const slow = `write 0 b u32;
words 1 1;
main invocations 64 {
	var u32 x = b[id.x];
	for (i = 0u; i < p[0].x; i + 1u) {
		x = x * 1664525u + 1013904223u;
		x = x ^ (x >> 7u);
	}
	b[id.x] = x;
}
`

var doubleBindings = []gpurun.Binding{gpurun.ReadWrite, gpurun.Params}

var target = gputest.Target{
	Name: "vulkan",
	Open: func(adapter string) (gpurun.Device, error) {
		d, err := Open(adapter)
		if err != nil {
			return nil, err
		}
		return d, nil
	},
	Double: double, Slow: slow,
	Bad: map[string]string{
		"syntax":         "main invocations ( {",
		"type":           "main invocations 1 {\n\tvar f32 x = 1u;\n}\n",
		"entry":          "func f() {\n}\n",
		"group size":     "main invocations 65536 {\n}\n",
		"group memory":   "shared s f32 1000000;\nmain invocations 1 {\n\ts[0u] = 1.0;\n}\n",
		"wrong binding":  "write 7 b u32;\nmain invocations 1 {\n\tb[0u] = 1u;\n}\n",
		"no such device": "#version 430 core\nvoid main() {}\n",
	},
}

// TestDevice: the device keeps the promises of a gpurun.Device, with each setting.
func TestDevice(t *testing.T) {
	for _, set := range []string{"", "fence", "nopush", "norobust", "apart"} {
		t.Run(set, func(t *testing.T) {
			t.Setenv(settingsIn, set)
			gputest.RunContract(t, target)
		})
	}
}

// TestApart: transfers of several parts, two at a time, to memory that the host does not see.
func TestApart(t *testing.T) {
	t.Setenv(settingsIn, "apart")
	d := open(t)
	const n = 5*chunk/2 + 8
	b, err := d.NewBuffer(n+64, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	if mem, _, err := d.direct(own(b), 0, n); mem != nil || err != nil {
		t.Fatalf("the host sees the memory: %v", err)
	}
	for round := range byte(3) {
		var wg sync.WaitGroup
		for half := range int64(2) { // two transfers at a time, each of two parts
			wg.Go(func() {
				off, size := half*(n/2)+16, int64(n/2)
				err := d.Write(b, off, size, func(dst []byte, at int64) {
					for i := range dst {
						dst[i] = byte((off+at+int64(i))%251) + round
					}
				})
				if err == nil {
					err = d.Read(b, off, size, func(src []byte, at int64) {
						for i := range src {
							if src[i] != byte((off+at+int64(i))%251)+round {
								t.Errorf("round %d: byte %d is %d", round, off+at+int64(i), src[i])
								return
							}
						}
					})
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for way, pool := range d.staging {
		if len(pool) < 1 || len(pool) > maxStaging {
			t.Errorf("direction %d keeps %d staging buffers", way, len(pool))
		}
	}
}

// TestBindings: a module must not have bindings that the pipeline lacks, or has for something else.
func TestBindings(t *testing.T) {
	d := open(t)
	for _, list := range [][]gpurun.Binding{nil, {gpurun.ReadWrite}, {gpurun.ReadWrite, gpurun.ReadOnly}, {gpurun.Params, gpurun.Params}, make([]gpurun.Binding, maxBindings+1)} {
		var se *gpurun.SourceError
		if _, err := d.NewPipeline(double, list); !errors.As(err, &se) {
			t.Errorf("%v: %v", list, err)
		}
	}
}

// TestBinary: a pipeline is made of a module and the driver's cache, and refused if the cache is of
// another driver.
func TestBinary(t *testing.T) {
	d := open(t)
	p, err := d.NewPipeline(double, doubleBindings)
	if err != nil {
		t.Fatal(err)
	}
	data, err := d.Binary(p)
	if err != nil {
		t.Fatal(err)
	}
	words := int(binary.LittleEndian.Uint32(data)) * 4
	n := len(data) - 8 - words
	if n < len(d.adapter.cache) {
		t.Fatalf("%d bytes of the driver", n)
	}
	q, err := d.NewPipelineOf(data, doubleBindings)
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.Binary(q)
	if err != nil || string(again[:8+words]) != string(data[:8+words]) {
		t.Errorf("the module changed: %v", err)
	}
	for name, change := range map[string]func([]byte){
		"another vendor": func(b []byte) { b[len(b)-n+8]++ },
		"another driver": func(b []byte) { b[len(b)-n+16]++ },
		"too long":       func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<31) },
		"no module":      func(b []byte) { clear(b[:4]) },
		"words":          func(b []byte) { b[4]++ },
	} {
		bad := append([]byte(nil), data...)
		change(bad)
		if _, err := d.NewPipelineOf(bad, doubleBindings); !errors.Is(err, gpurun.ErrBinary) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStaging: transfers through staging buffers, as on a card with memory of its own, have the
// order of submissions.
func TestStaging(t *testing.T) {
	d := open(t)
	d.adapter.info.Kind = "DiscreteGPU"
	for i := range d.adapter.memory.MemoryTypeCount { // the device's memory seems not to be cached
		d.adapter.memory.MemoryTypes[i].PropertyFlags &^= 8
	}
	p, err := d.NewPipeline(double, doubleBindings)
	if err != nil {
		t.Fatal(err)
	}
	const n = 3<<21 + 100 // words: four parts
	b, err := d.NewBuffer(n*4, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	if own(b).slab.host != nil {
		t.Fatal("the host sees the memory")
	}
	u, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	groups := d.adapter.info.Limits.Groups
	words := []byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.LittleEndian.PutUint32(words, uint32(min(n, groups*64)))
	for round := range uint32(3) {
		if err := d.Write(b, 0, n*4, func(dst []byte, at int64) {
			for i := 0; i < len(dst); i += 4 {
				binary.LittleEndian.PutUint32(dst[i:], uint32(at/4)+uint32(i/4)+round)
			}
		}); err != nil {
			t.Fatal(err)
		}
		x := gpurun.Dispatch{Pipe: p, Bind: []gpurun.Range{{Buf: b, Size: b.Size()}, {Buf: u, Size: 16}}, Groups: [3]uint32{uint32(min(groups, (n+63)/64)), 1, 1}}
		if err := d.Submit([]gpurun.Dispatch{x, x}, u, words); err != nil {
			t.Fatal(err)
		}
		var read atomic.Int64
		err := d.Read(b, 0, n*4, func(src []byte, at int64) { // for two parts at a time
			read.Add(int64(len(src)))
			for i := 0; i < len(src); i += 4 {
				k := at/4 + int64(i/4)
				want := (uint32(k)+round)*4 + 3
				if k >= groups*64 {
					want = uint32(k) + round
				}
				if got := binary.LittleEndian.Uint32(src[i:]); got != want {
					t.Errorf("round %d: word %d is %d, want %d", round, k, got, want)
					return
				}
			}
		})
		if err != nil || read.Load() != n*4 {
			t.Fatalf("%d bytes: %v", read.Load(), err)
		}
	}
	staged := 0
	for _, s := range d.slabs {
		if s.kind != onDevice {
			staged++
		}
	}
	if staged > 2*maxStaging {
		t.Errorf("%d staging buffers", staged)
	}
}

// TestSlabs makes and frees buffers in any order. They do not overlap, and the memory is given back.
func TestSlabs(t *testing.T) {
	d := open(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var list []*Buffer
	for range 3000 {
		if len(list) > 0 && rng.IntN(100) < 45+len(list)/20 {
			i := rng.IntN(len(list))
			list[i].Release()
			list = append(list[:i], list[i+1:]...)
			continue
		}
		size := 1 + rng.Int64N(1<<uint(4+rng.IntN(17)))
		if rng.IntN(200) == 0 {
			size = largeBuffer + rng.Int64N(1<<20)
		}
		b, err := d.NewBuffer(size, gpurun.Storage)
		if err != nil {
			t.Fatal(err)
		}
		x := own(b)
		if x.at%slabAlign != 0 || x.size < size || x.at+x.size > int64(len(x.slab.host)) {
			t.Fatalf("%d bytes at %d for %d", x.size, x.at, size)
		}
		for _, y := range list {
			if y.slab == x.slab && x.at < y.at+y.size && y.at < x.at+x.size {
				t.Fatalf("[%d,+%d) and [%d,+%d) overlap", x.at, x.size, y.at, y.size)
			}
		}
		list = append(list, x)
	}
	for _, b := range list {
		b.Release()
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(d.slabs) > 1 {
		t.Errorf("%d slabs are left", len(d.slabs))
	}
	for _, s := range d.slabs {
		if s.used != 0 || len(s.holes) != 1 || s.holes[0] != (extent{0, slabSize}) {
			t.Errorf("a slab has %d buffers and the holes %v", s.used, s.holes)
		}
	}
}

// TestPinned: the memory of a transfer is not given away when its buffer is released meanwhile.
func TestPinned(t *testing.T) {
	d := open(t)
	b, err := d.NewBuffer(4096, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write(b, 0, 4096, func(dst []byte, _ int64) {
		b.Release()
		other, err := d.NewBuffer(4096, gpurun.Storage)
		if err != nil {
			t.Fatal(err)
		}
		if x := own(other); x.slab == own(b).slab && x.at == own(b).at {
			t.Error("the memory was given to another buffer")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(d.graves) != 0 {
		t.Errorf("%d graves are left", len(d.graves))
	}
}

// TestManySubmissions: command buffers are used again, and nothing is left.
func TestManySubmissions(t *testing.T) {
	d := open(t)
	p, err := d.NewPipeline(double, doubleBindings)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(256, gpurun.Storage)
	if err != nil {
		t.Fatal(err)
	}
	u, err := d.NewBuffer(16, gpurun.Uniform)
	if err != nil {
		t.Fatal(err)
	}
	x := gpurun.Dispatch{Pipe: p, Bind: []gpurun.Range{{Buf: b, Size: 256}, {Buf: u, Size: 16}}, Groups: [3]uint32{1, 1, 1}}
	many := make([]gpurun.Dispatch, maxPart+1)
	for i := range many {
		many[i] = x
	}
	if err := d.Submit(many, u, make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if err := d.Submit([]gpurun.Dispatch{x}, u, make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 9 {
			if err := d.Wait(); err != nil {
				t.Fatal(err)
			}
			if n := d.Backlog(); n != 0 {
				t.Fatalf("a backlog of %d", n)
			}
		}
	}
	if n := len(d.main.recorded); n > 20 {
		t.Errorf("%d command buffers", n)
	}
}

// TestValidation: the validation layers report a wrong call.
func TestValidation(t *testing.T) {
	d := open(t)
	if !Validated() {
		t.Skip("no validation layers (Debian: vulkan-validationlayers)")
	}
	before := len(messages)
	info := vk.BufferCreateInfo{SType: vk.StructureTypeBufferCreateInfo, Usage: vk.BufferUsageStorageBufferBit} // of no bytes
	var handle uint64
	vk.Call(d.CreateBuffer, d.Handle, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&handle)))
	vk.Call(d.DestroyBuffer, d.Handle, uintptr(handle), 0)
	if len(messages) == before {
		t.Fatal("no message")
	}
	for len(messages) > before {
		if m := <-messages; !strings.Contains(m, "BufferCreateInfo") {
			t.Error(m)
		}
	}
}

// TestMissing: errors name what an adapter lacks, and which adapters there are.
func TestMissing(t *testing.T) {
	open(t)
	if _, err := Open("no such adapter"); !errors.Is(err, ErrNoAdapter) || !strings.Contains(err.Error(), "there are ") {
		t.Errorf("%v", err)
	}
	list, err := Adapters()
	if err != nil || len(list) == 0 || list[0].Name == "" || list[0].Driver == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestCompiles: every bad text has an error with a line.
func TestCompiles(t *testing.T) {
	d := open(t)
	var se *gpurun.SourceError
	if _, err := d.NewPipeline("write 0 b u32;\nmain invocations 1 {\n\tb[0u] = 1.0;\n}\n", doubleBindings[:1]); !errors.As(err, &se) || !strings.Contains(se.Log, "line 3") {
		t.Errorf("%v", err)
	}
	if _, err := spirv.Compile(double, d.adapter.floats, d.adapter.push); err != nil {
		t.Error(err)
	}
}
