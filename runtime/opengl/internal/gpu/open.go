//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace/internal/osthread"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/opengl/internal/egl"
)

// ErrNoAdapter says that the machine has no OpenGL 4.3.
var ErrNoAdapter = egl.ErrNone

// Major and Minor are the first version with compute shaders and storage buffers.
const Major, Minor = 4, 3

// Of OpenGL 4.5, and of GL_KHR_shader_subgroup.
const (
	resetNotification = 0x8256
	loseOnReset       = 0x8252
	subgroupSize      = 0x9532 // then come their stages and features: basic, vote and arithmetic are 7
)

// functions is go-gl's table of OpenGL's functions, one for the process: each function uses the
// current context.
var functions struct {
	sync.Mutex
	loaded bool
}

func loadFunctions(proc func(string) unsafe.Pointer) error {
	functions.Lock()
	defer functions.Unlock()
	if functions.loaded {
		return nil
	}
	if err := gl.InitWithProcAddrFunc(proc); err != nil {
		return fmt.Errorf("%w: libEGL lacks %v", ErrNoAdapter, err)
	}
	functions.loaded = true
	return nil
}

// Device is a context with its thread.
type Device struct {
	ctx    Context
	thread *osthread.Thread
	info   gpurun.Info
	robust bool // resets can be queried
	fixed  bool // buffers of fixed size stay in place

	formats int64 // number of formats in which the driver exports shaders

	mu     sync.Mutex
	lost   error // set once, then returned by every call
	closed bool
	queued int // submissions since the queue was last seen empty

	buffers   map[*Buffer]struct{}
	pipelines map[*Pipeline]struct{}
}

// Adapters describes the places for contexts, best first.
func Adapters() (list []gpurun.Info, err error) {
	all, err := openAll(func(gpurun.Info) bool { return false })
	for _, d := range all {
		list = append(list, d.info)
		d.Close()
	}
	return list, err
}

// Best opens the best context whose renderer or driver contains match (ignoring case; "" matches
// all).
func Best(match string) (*Device, error) {
	fits := func(i gpurun.Info) bool {
		return strings.Contains(strings.ToLower(i.Name+" "+i.Driver), strings.ToLower(match))
	}
	all, err := openAll(func(i gpurun.Info) bool { return !software(i) && fits(i) })
	if err != nil {
		return nil, err
	}
	var pick *Device
	var names []string
	for _, d := range all {
		names = append(names, d.info.Name)
		if pick == nil && fits(d.info) {
			pick = d
			continue
		}
		d.Close()
	}
	if pick == nil {
		return nil, fmt.Errorf("%w is named %q: there are %s", ErrNoAdapter, match, strings.Join(names, ", "))
	}
	return pick, nil
}

func software(i gpurun.Info) bool { return i.Kind == "CPU" }

// openAll opens the available contexts, up to one that is enough, hardware before software. It
// fails if there is none.
func openAll(enough func(gpurun.Info) bool) (list []*Device, err error) {
	displays, err := egl.Displays()
	if err != nil {
		return nil, err
	}
	var refused []error
	for _, x := range displays {
		d, err := openOn(x)
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", x.Name, err))
			continue
		}
		if list = append(list, d); enough(d.info) {
			break
		}
	}
	if list == nil {
		return nil, errors.Join(refused...)
	}
	hardware := slices.DeleteFunc(slices.Clone(list), func(d *Device) bool { return software(d.info) })
	return append(hardware, slices.DeleteFunc(list, func(d *Device) bool { return !software(d.info) })...), nil
}

// openOn opens a display. If it has no context of the needed version, the error names its version.
func openOn(x egl.Display) (*Device, error) {
	proc, err := egl.Proc()
	if err != nil {
		return nil, err
	}
	c, err := x.New(Major, Minor)
	if err != nil {
		if c, _ = x.New(1, 0); c == nil {
			return nil, err
		}
	}
	return Open(c, proc)
}

var errOld = fmt.Errorf("%w: compute shaders need OpenGL %d.%d", ErrNoAdapter, Major, Minor)

// Open makes a device of a context, which the device then owns. proc finds OpenGL's functions.
func Open(c Context, proc func(name string) unsafe.Pointer) (*Device, error) {
	d := &Device{ctx: c, buffers: map[*Buffer]struct{}{}, pipelines: map[*Pipeline]struct{}{}}
	var err error
	d.thread, err = start(c, func() error {
		if err := loadFunctions(proc); err != nil {
			return err
		}
		return d.describe()
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// SomeCurrent reports whether the calling thread has a context: without one all calls silently do
// nothing.
func SomeCurrent() bool { return gl.GetString(gl.VERSION) != nil }

// describe finds out the context's capabilities.
func (d *Device) describe() error {
	text := func(what uint32) string {
		p := gl.GetString(what)
		if p == nil {
			return "unknown"
		}
		return gl.GoStr(p)
	}
	d.info.Name, d.info.Driver = text(gl.RENDERER), text(gl.VENDOR)+" "+text(gl.VERSION)
	if !SomeCurrent() {
		return fmt.Errorf("%w: no context is current on the device's thread", ErrNoAdapter)
	}
	have, least := number(gl.MAJOR_VERSION), number(gl.MINOR_VERSION)
	if have < Major || have == Major && least < Minor {
		return fmt.Errorf("%w, but %s has %s", errOld, d.info.Name, text(gl.VERSION))
	}
	d.info.Kind = "DiscreteGPU"
	for _, name := range []string{"llvmpipe", "softpipe", "swrast", "swiftshader", "software"} {
		if strings.Contains(strings.ToLower(d.info.Name), name) {
			d.info.Kind = "CPU"
		}
	}
	exts := map[string]bool{}
	for i := range number(gl.NUM_EXTENSIONS) {
		exts[gl.GoStr(gl.GetStringi(gl.EXTENSIONS, uint32(i)))] = true
	}
	later := func(least4 int64, ext string) bool { return have > 4 || least >= least4 || exts[ext] }
	d.robust = later(5, "GL_KHR_robustness") && number(resetNotification) == loseOnReset
	d.fixed = later(4, "GL_ARB_buffer_storage")
	d.formats = number(gl.NUM_PROGRAM_BINARY_FORMATS)
	d.info.Limits = gpurun.Limits{
		Binding:          min(number(gl.MAX_SHADER_STORAGE_BLOCK_SIZE), 1<<31-1) &^ 15,
		Buffer:           1<<31 - 16, // no limit of OpenGL, but the largest size with which drivers on CPUs compute
		Uniform:          min(number(gl.MAX_UNIFORM_BLOCK_SIZE), 1<<16) &^ 15,
		Align:            max(number(gl.SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT), number(gl.UNIFORM_BUFFER_OFFSET_ALIGNMENT), 16),
		StorageBuffers:   int(min(number(gl.MAX_COMPUTE_SHADER_STORAGE_BLOCKS), number(gl.MAX_SHADER_STORAGE_BUFFER_BINDINGS))),
		Groups:           min(numberAt(gl.MAX_COMPUTE_WORK_GROUP_COUNT, 0), numberAt(gl.MAX_COMPUTE_WORK_GROUP_COUNT, 1), numberAt(gl.MAX_COMPUTE_WORK_GROUP_COUNT, 2)),
		GroupSize:        int(min(number(gl.MAX_COMPUTE_WORK_GROUP_INVOCATIONS), numberAt(gl.MAX_COMPUTE_WORK_GROUP_SIZE, 0))),
		WorkgroupStorage: number(gl.MAX_COMPUTE_SHARED_MEMORY_SIZE),
	}
	if d.info.Kind != "CPU" {
		d.info.Limits.Buffer = 1<<32 - 16
	}
	if exts["GL_KHR_shader_subgroup"] && number(subgroupSize+1)&gl.COMPUTE_SHADER_BIT != 0 && number(subgroupSize+2)&7 == 7 {
		const shuffles, clustered = 16 | 32, 64
		can := number(subgroupSize + 2)
		d.info.Limits.Subgroup = int(number(subgroupSize))
		d.info.Limits.Shuffles, d.info.Limits.Clusters = can&shuffles == shuffles, can&clustered != 0
	}
	return d.reported()
}

func number(what uint32) int64 {
	var n int64
	gl.GetInteger64v(what, &n)
	return n
}

func numberAt(what, i uint32) int64 {
	var n int32
	gl.GetIntegeri_v(what, i, &n)
	return int64(n)
}

// Info describes the device.
func (d *Device) Info() gpurun.Info { return d.info }
