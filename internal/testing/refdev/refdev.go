package refdev

import (
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func init() { runtime.Register("ref", driver{}) }

type driver struct{}

func (driver) Open(c runtime.Config) (runtime.Device, error) { return New(c), nil }

func (driver) Probe() (string, error) { return "ref: interprets kernels", nil }

// Device implements runtime.Device.
type Device struct {
	caps  runtime.Caps
	limit int64

	mu    sync.Mutex
	stats runtime.Stats
}

type buffer struct {
	data   []byte
	shared bool // visible to the program: see AllocShared
}

func (b *buffer) Bytes() int64 { return int64(len(b.data)) }

type program struct{ k *codegen.Kernel }

func (p *program) Kernel() runtime.Kernel { return p.k }

// New makes a device.
func New(c runtime.Config) *Device {
	d := &Device{limit: c.MemoryLimit, caps: runtime.Caps{
		Name: "ref", Description: "kernel interpreter", Fingerprint: "ref",
		DTypes:    ir.AllDTypes,
		Denormals: c.Denormals,
		Exact:     true, MaxOperands: 32, MaxScalars: 64, MaxBody: 4096, MaxBuffer: 1 << 40,
		Bandwidth: 1e10, LaunchCost: 1e-6, OpCost: 1e-10,
	}}
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		d.caps.ElemSize[dt] = dt.Size()
	}
	return d
}

func (d *Device) Caps() *runtime.Caps { return &d.caps }

// Alloc fills memory with a pattern, which reveals reads of unwritten memory.
func (d *Device) Alloc(bytes int64) (runtime.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := fault.Hit("alloc"); err != nil {
		return nil, fmt.Errorf("%w: %v", runtime.ErrOutOfMemory, err)
	}
	if bytes > 1<<34 || d.limit > 0 && d.stats.AllocBytes+bytes > d.limit {
		return nil, fmt.Errorf("%w: %d bytes were requested, %d of %d are in use", runtime.ErrOutOfMemory, bytes, d.stats.AllocBytes, d.limit)
	}
	b := &buffer{data: make([]byte, bytes)}
	for i := range b.data {
		b.data[i] = 0xa5
	}
	d.stats.Allocs++
	d.stats.AllocBytes += bytes
	d.stats.PeakBytes = max(d.stats.PeakBytes, d.stats.AllocBytes)
	return b, nil
}

// AllocShared is Alloc of memory that the program may access.
func (d *Device) AllocShared(bytes int64) (runtime.Buffer, error) {
	b, err := d.Alloc(bytes)
	if err == nil {
		clear(b.(*buffer).data)
		b.(*buffer).shared = true
	}
	return b, err
}

// Shared is the memory of AllocShared.
func (d *Device) Shared(b runtime.Buffer) []byte {
	if b := b.(*buffer); b.shared {
		return b.data
	}
	return nil
}

// Free overwrites the memory, which reveals reads of freed memory. The program's own memory is not
// changed.
func (d *Device) Free(b runtime.Buffer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data := b.(*buffer).data
	d.stats.AllocBytes -= int64(len(data))
	if b.(*buffer).shared {
		return
	}
	for i := range data {
		data[i] = 0x5a
	}
}

func (d *Device) Write(dst runtime.Buffer, dt ir.DType, off int64, src []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(dst.(*buffer).data[off*int64(dt.Size()):], src)
	return nil
}

func (d *Device) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(dst, src.(*buffer).data[off*int64(dt.Size()):])
	return nil
}

func (d *Device) Build(k runtime.Kernel) (runtime.Program, error) {
	ck, ok := k.(*codegen.Kernel)
	if !ok {
		return nil, fmt.Errorf("kernel of type %T", k)
	}
	if err := ck.Verify(); err != nil {
		return nil, err
	}
	return &program{ck}, nil
}

// tileBytes makes tiles small; small chains then have several.
const tileBytes = 1 << 12

// Run interprets each launch in order, on the buffers themselves: a wrong in-place decision gives
// wrong values.
func (d *Device) Run(ls []runtime.Launch) error {
	if runtime.HasChains(ls) {
		return runtime.RunChains(ls, tileBytes, d, d.Run)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range ls {
		if err := d.launch(&ls[i]); err != nil {
			return &runtime.LaunchError{Index: i, Err: err}
		}
	}
	return nil
}

func (d *Device) launch(l *runtime.Launch) error {
	if err := fault.Hit("launch"); err != nil {
		return err
	}
	k := l.Prog.(*program).k
	args := make([]codegen.HostArg, len(l.Args))
	for i, a := range l.Args {
		args[i].Access = a
		if a.Buf != nil {
			args[i].Data = a.Buf.(*buffer).data
		}
	}
	d.stats.Launches++
	return codegen.Interpret(k, slices.Clone(l.Dims[:l.Rank]), l.Kept, args, l.Scalars)
}

func (d *Device) Wait(bool) error { return nil }

func (d *Device) Stats() runtime.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// ResetPeak restarts PeakBytes from the live bytes.
func (d *Device) ResetPeak() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.PeakBytes = d.stats.AllocBytes
}

func (d *Device) Close() error { return nil }
