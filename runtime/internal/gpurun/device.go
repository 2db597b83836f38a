package gpurun

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Runner is a runtime.Device on a Device.
type Runner struct {
	api
	gpu    Device
	lang   *shader.Dialect
	caps   runtime.Caps
	limits limits
	cfg    runtime.Config
	memory memory
	stats  counters

	shaders shaders
	parts   parts
	notes   shaderNotes
	words   sync.Pool   // of *[]uint32, the words of batches
	refused atomic.Bool // the driver rejected a shader with subgroups: no more are made
	units   units
	skips   bool   // the Device skips dispatches after a fault
	lose    string // name of the fault point that makes the device vanish

	mu     sync.Mutex // guards the shared state of submissions; not held while compiling
	params kept       // buffers of uniform words
	spare  []Buffer   // buffers without contents: see warm
	faults []Buffer   // unused buffers for index faults

	repeats repeats

	listMu    sync.Mutex
	forgotten []*program // programs whose shaders the next Run releases
}

// counters are the parts of runtime.Stats that memory does not count.
type counters struct {
	launches, read, written, waits             atomic.Int64
	prepared, recorded, replayed, unsteady     atomic.Int64
	compiles, compileFails, fallbacks, compile atomic.Int64
}

// costs are the constants for planning: bytes per second, seconds of a launch among others, and
// seconds of an operation on one element. Plans depend on the ratios, which vary less between
// adapters of a kind than the values. A software adapter uses the machine's memory and a few of its
// lanes.
var costs = map[string]struct{ bandwidth, launch, op float64 }{
	"DiscreteGPU":   {1e12, 5e-6, 1e-13},
	"IntegratedGPU": {1e11, 1e-5, 1e-12},
	"CPU":           {5e9, 2e-5, 5e-11},
}

// New returns a device of the engine, named after its API, with shaders in lang. Before calls that
// reach g it passes the fault point NAME-lost, at which g vanishes.
func New(name string, g Device, lang *shader.Dialect, c runtime.Config) *Runner {
	info := g.Info()
	l := info.Limits
	if lang.Subgroups == "" || c.Subgroups == runtime.SubgroupsOff {
		l.Subgroup = 0 // keeps stored entries of a device with subgroups apart from those without
	}
	l.Shuffles = l.Shuffles && l.Subgroup > 0 && lang.Shuffles != ""
	l.Clusters = l.Clusters && l.Shuffles && lang.Clusters != ""
	d := &Runner{api: api(name), lose: name + "-lost", gpu: g, lang: lang, cfg: c}
	d.skips = info.Skips
	d.shaders.list, d.parts.list = map[string]*compiled{}, map[string]*program{}
	var narrow ir.DTypeSet
	if c.Narrow == runtime.NarrowOn {
		narrow = lang.Narrow(info.Store16, info.Store8)
	}
	d.limits = limits{
		api:     d.api,
		binding: l.Binding,
		align:   l.Align,
		// One binding goes to the uniform words, which no limit here counts.
		bindings: l.StorageBuffers,
		threads:  maxThreads,
		software: info.Kind == "CPU",
		narrow:   narrow,

		groupSize: l.GroupSize,
		subgroups: subgroups{size: l.Subgroup, shuffles: l.Shuffles, clusters: l.Clusters},
		workgroup: l.WorkgroupStorage,
	}
	if lang.Matrices != "" && c.Matrices == runtime.MatricesOn {
		d.units.shapes, d.units.trusted = bestShapes(info.Matrices), map[shader.Tile]bool{}
	}
	if c.Precision != runtime.PrecisionFull && !d.units.inParts(c.Precision, info.Emulated) {
		d.stats.fallbacks.Add(1)
		if c.OnError != nil {
			c.OnError(d.errorf("products of float32 stay as they are: no matrix units multiply bfloat16"))
		}
	}
	if info.Points > 0 {
		d.limits.threads = min(d.limits.threads, info.Points)
	}
	d.caps = runtime.Caps{
		Name:        name,
		Description: fmt.Sprintf("%s (%s, %s)", info.Name, info.Kind, info.Driver),
		Fingerprint: fmt.Sprintf("%s %s %x:%x %s %+v", lang.Printer(), info.Name, info.Vendor, info.Model, info.Driver, l),
		DTypes:      shader.DTypes,
		SlowBuild:   true,
		MaxOperands: min(l.StorageBuffers-1, 32), // one more binding reports faults
		MaxSlots:    64,                          // their words fit in the smallest block of uniforms
		MaxScalars:  64,
		MaxBody:     512,
		MaxBindings: l.StorageBuffers - 1,
		MaxBuffer:   l.Buffer,
	}
	if l.Subgroup > 0 {
		d.caps.Description += fmt.Sprintf(", subgroups of %d", l.Subgroup)
	}
	if narrow != 0 {
		d.caps.Fingerprint += fmt.Sprintf(" narrow %x", narrow)
		d.caps.Description += ", " + narrowText(narrow)
	}
	for _, x := range d.units.shapes {
		d.caps.Fingerprint += fmt.Sprintf(" %+v", x)
		if x.Parts > 0 {
			d.caps.Description += fmt.Sprintf(", float32 multiplied as %d parts of %v", x.Parts, x.Of)
			continue
		}
		d.caps.Description += fmt.Sprintf(", matrix units of %dx%dx%d %v", x.M, x.N, x.K, x.Of)
	}
	if c.Isolate {
		d.caps.Description += ", in a process of its own"
	}
	cost, ok := costs[info.Kind]
	if !ok {
		cost = costs["DiscreteGPU"]
	}
	d.caps.Bandwidth, d.caps.LaunchCost, d.caps.OpCost = cost.bandwidth, cost.launch, cost.op
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		if shader.DTypes.Has(dt) {
			d.caps.ElemSize[dt] = int(d.limits.elem(dt))
		}
	}
	d.repeats.seed, d.repeats.often = maphash.MakeSeed(), 1
	d.memory = memory{api: d.api, gpu: g, limit: c.MemoryLimit, pool: map[int64]*oldest{}}
	d.notes.init(d)
	d.prebuildCached()
	return d
}

// narrowText says which elements are stored in their own size.
func narrowText(narrow ir.DTypeSet) string {
	sizes := map[int]bool{}
	for dt := range ir.NumDTypes {
		if narrow.Has(dt) {
			sizes[dt.Bits()] = true
		}
	}
	switch {
	case sizes[8] && sizes[16]:
		return "elements of 8 and 16 bits in their own size"
	case sizes[8]:
		return "elements of 8 bits in their own size"
	}
	return "elements of 16 bits in their own size"
}

// enter begins every call that reaches the device.
func (d *Runner) enter() error {
	if err := fault.Hit(d.lose); err != nil {
		d.gpu.Lose(err)
	}
	return d.deviceError(d.gpu.Usable())
}

// Caps returns constant capabilities.
func (d *Runner) Caps() *runtime.Caps { return &d.caps }

// Wait waits until submitted work is done. Background work is the queue of [shaderNotes].
func (d *Runner) Wait(background bool) error {
	if background {
		d.notes.wait()
	}
	if err := d.enter(); err != nil {
		return err
	}
	return d.deviceError(d.gpu.Wait())
}

// Stats returns the counters.
func (d *Runner) Stats() runtime.Stats {
	s := runtime.Stats{
		Launches:     d.stats.launches.Load(),
		BytesRead:    d.stats.read.Load(),
		BytesWritten: d.stats.written.Load(),
		Compiles:     d.stats.compiles.Load(),
		CompileFails: d.stats.compileFails.Load(),
		Fallbacks:    d.stats.fallbacks.Load(),
		Waits:        d.stats.waits.Load(),
		Prepared:     d.stats.prepared.Load(),
		Recorded:     d.stats.recorded.Load(),
		Replayed:     d.stats.replayed.Load(),
		Unsteady:     d.stats.unsteady.Load(),
		CompileNanos: d.stats.compile.Load(),
	}
	d.memory.stats(&s)
	return s
}

// Close waits for submitted work and releases everything.
func (d *Runner) Close() error {
	d.notes.stop()
	err := d.gpu.Close()
	d.memory.close()
	return d.deviceError(err)
}

// Write converts host elements and copies them to dst from element off on.
func (d *Runner) Write(dst runtime.Buffer, dt ir.DType, off int64, src []byte) error {
	b, n, err := d.transfer(dst, dt, off, len(src))
	if err != nil || n == 0 {
		return err
	}
	size, elem := int64(dt.Size()), d.limits.elem(dt)
	return d.memory.again(func() error {
		return d.gpu.Write(b.mem, off*elem, n*elem, func(part []byte, at int64) {
			pack(part, dt, elem, src[at/elem*size:])
		})
	})
}

// Read waits for earlier work and copies elements of src from off on to the host.
func (d *Runner) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	b, n, err := d.transfer(src, dt, off, len(dst))
	if err != nil || n == 0 {
		return err
	}
	size, elem := int64(dt.Size()), d.limits.elem(dt)
	return d.memory.again(func() error {
		return d.gpu.Read(b.mem, off*elem, n*elem, func(part []byte, at int64) {
			unpack(dst[at/elem*size:], dt, elem, part)
		})
	})
}

// transfer checks a copy of host bytes and returns its number of elements.
func (d *Runner) transfer(buf runtime.Buffer, dt ir.DType, off int64, bytes int) (*buffer, int64, error) {
	if err := d.enter(); err != nil {
		return nil, 0, err
	}
	if !shader.DTypes.Has(dt) {
		return nil, 0, d.errorf("elements of %v cannot be copied: %w", dt, ir.ErrUnsupported)
	}
	b, err := d.memory.own(buf)
	if err != nil {
		return nil, 0, err
	}
	n, room := int64(bytes/dt.Size()), b.bytes/d.limits.elem(dt)
	if off < 0 || bytes%dt.Size() != 0 || off > room-n {
		return nil, 0, d.errorf("%d bytes of %v at element %d do not fit a buffer of %d elements", bytes, dt, off, room)
	}
	return b, n, nil
}
