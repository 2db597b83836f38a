package null

import (
	"fmt"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func init() { runtime.Register("null", driver{}) }

type driver struct{}

func (driver) Open(c runtime.Config) (runtime.Device, error) {
	return New(Options{MemoryLimit: c.MemoryLimit}), nil
}

func (driver) Probe() (string, error) { return "null: counts launches, computes nothing", nil }

// Options are what a null device pretends to be. The zero value is a device
// with every dtype and roomy limits.
type Options struct {
	Caps        func(*runtime.Caps) // changes the default caps; may be nil
	MemoryLimit int64               // bytes; 0: no limit
}

// DefaultCaps are the caps of a device opened without options: costs are those
// of a small desktop CPU, so that plans look as they would there.
func DefaultCaps() runtime.Caps {
	c := runtime.Caps{
		Name:        "null",
		Description: "computes nothing",
		Fingerprint: "null",
		DTypes:      ir.AllDTypes,
		Exact:       true,
		MaxOperands: 32,
		MaxSlots:    64,
		MaxScalars:  64,
		MaxBody:     256,
		MaxBuffer:   1 << 40,
		Bandwidth:   1e10,
		LaunchCost:  1e-6,
		OpCost:      1e-10,
	}
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		c.ElemSize[d] = d.Size()
	}
	return c
}

// Device implements [runtime.Device]. Runs counts calls of Run.
type Device struct {
	caps  runtime.Caps
	limit int64

	mu     sync.Mutex
	stats  runtime.Stats
	runs   int64
	closed bool
}

// New opens a device.
func New(o Options) *Device {
	d := &Device{caps: DefaultCaps(), limit: o.MemoryLimit}
	if o.Caps != nil {
		o.Caps(&d.caps)
	}
	return d
}

// Caps never change.
func (d *Device) Caps() *runtime.Caps { return &d.caps }

// buffer has a size and no memory.
type buffer struct {
	dev   *Device
	bytes int64
	freed bool
}

func (b *buffer) Bytes() int64 { return b.bytes }

type program struct {
	dev *Device
	k   *codegen.Kernel
}

func (p *program) Kernel() runtime.Kernel { return p.k }

// enter locks an open device; leave with d.mu.Unlock.
func (d *Device) enter() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return runtime.ErrClosed
	}
	return nil
}

// Alloc counts bytes against the limit.
func (d *Device) Alloc(bytes int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if err := fault.Hit(fault.Alloc); err != nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrOutOfMemory, err)
	}
	if bytes < 0 || bytes > d.caps.MaxBuffer {
		return nil, fmt.Errorf("%w: %d bytes, the largest buffer has %d", runtime.ErrOutOfMemory, bytes, d.caps.MaxBuffer)
	}
	if d.limit > 0 && d.stats.AllocBytes > d.limit-bytes {
		return nil, fmt.Errorf("%w: %d bytes in addition to %d in use, the limit is %d", runtime.ErrOutOfMemory, bytes, d.stats.AllocBytes, d.limit)
	}
	d.stats.Allocs++
	d.stats.AllocBytes += bytes
	d.stats.PeakBytes = max(d.stats.PeakBytes, d.stats.AllocBytes)
	return &buffer{dev: d, bytes: bytes}, nil
}

// Free gives the bytes back; freeing twice does nothing.
func (d *Device) Free(b runtime.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x, ok := b.(*buffer); ok && x.dev == d && !x.freed {
		x.freed = true
		d.stats.AllocBytes -= x.bytes
	}
}

// own says whether b is a live buffer of d that holds n elements of dt from
// element off.
func (d *Device) own(b runtime.Buffer, dt ir.DType, off, n int64) error {
	x, ok := b.(*buffer)
	switch {
	case !ok || x.dev != d:
		return fmt.Errorf("null: the buffer belongs to another device")
	case x.freed:
		return fmt.Errorf("null: the buffer was freed")
	}
	size := int64(d.caps.ElemSize[dt])
	if size == 0 || off < 0 || n < 0 || off > x.bytes/size-n {
		return fmt.Errorf("null: elements [%d,%d) of %v are not within %d bytes", off, off+n, dt, x.bytes)
	}
	return nil
}

// Write checks and drops the data. off counts elements.
func (d *Device) Write(dst runtime.Buffer, dt ir.DType, off int64, src []byte) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.own(dst, dt, off, int64(len(src)/max(dt.Size(), 1)))
}

// Read checks and gives zeros. off counts elements.
func (d *Device) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.own(src, dt, off, int64(len(dst)/max(dt.Size(), 1))); err != nil {
		return err
	}
	clear(dst)
	return nil
}

// Build verifies the kernel and its limits.
func (d *Device) Build(k runtime.Kernel) (runtime.Program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	c, ok := k.(*codegen.Kernel)
	if !ok {
		return nil, fmt.Errorf("null: %T is not a kernel", k)
	}
	err := c.Verify()
	if err == nil {
		err = d.fits(c)
	}
	if err == nil {
		err = fault.Hit(fault.Compile)
	}
	if err != nil {
		d.stats.CompileFails++
		return nil, &runtime.CompileError{Kernel: k.String(), Log: err.Error(), Err: err}
	}
	d.stats.Compiles++
	return &program{dev: d, k: c}, nil
}

// fits holds a kernel against the limits of the caps.
func (d *Device) fits(k *codegen.Kernel) error {
	for _, o := range k.Operands {
		if o.Kind != codegen.Index && !d.caps.DTypes.Has(o.DT) {
			return fmt.Errorf("null: operands of %v are impossible: %w", o.DT, ir.ErrUnsupported)
		}
	}
	size := k.Size()
	if over := size.Over(&d.caps); over != "" {
		return fmt.Errorf("null: %s", over)
	}
	if n := len(k.Body); d.caps.MaxBody > 0 && n > d.caps.MaxBody {
		return fmt.Errorf("null: the kernel has %d instructions, the device takes %d", n, d.caps.MaxBody)
	}
	return nil
}

// Run checks and counts launches. It fails where a launch reaches outside a
// buffer, which on a real device would corrupt memory.
func (d *Device) Run(list []runtime.Launch) error {
	if runtime.HasChains(list) {
		return runtime.RunChains(list, 1<<20, d, d.Run)
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return &runtime.LaunchError{Err: err}
	}
	for i := range list {
		p, ok := list[i].Prog.(*program)
		err := fmt.Errorf("null: the program belongs to another device")
		if ok && p.dev == d {
			err = d.check(p.k, &list[i])
		}
		if err != nil {
			return &runtime.LaunchError{Index: i, Err: err}
		}
		r, w := codegen.Traffic(p.k, &list[i], &d.caps.ElemSize)
		d.stats.BytesRead += r
		d.stats.BytesWritten += w
		d.stats.Launches++
	}
	d.runs++
	return nil
}

// Runs counts the calls of Run that succeeded: one per plan.
func (d *Device) Runs() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs
}

// Wait returns at once.
func (d *Device) Wait(bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	d.mu.Unlock()
	return nil
}

// Stats returns the counters.
func (d *Device) Stats() runtime.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// ResetPeak makes PeakBytes start again from what is live.
func (d *Device) ResetPeak() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.PeakBytes = d.stats.AllocBytes
}

// Close ends the device; every later call gives ErrClosed.
func (d *Device) Close() error {
	if err := d.enter(); err != nil {
		return err
	}
	d.closed = true
	d.mu.Unlock()
	return nil
}
