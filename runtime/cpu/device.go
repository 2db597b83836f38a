package cpu

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/contract"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

func init() { runtime.Register("cpu", driver{}) }

type driver struct{}

// Open starts a device: its threads, and a compiler if allowed.
func (driver) Open(c runtime.Config) (runtime.Device, error) { return open(c) }

// Probe describes the machine.
func (driver) Probe() (string, error) {
	if err := machine.LevelError(); err != nil {
		return "", fmt.Errorf("cpu: %w", err)
	}
	return "cpu: " + ccode.Describe() + ", " + targets(), nil
}

// device implements runtime.Device.
type device struct {
	cfg   runtime.Config
	caps  runtime.Caps
	mem   *memory.Pool
	wide  crews // crews of all threads
	alone crews // crews of one thread, the calling one
	crowd threads.Crowd
	comp  *ccode.Compiler // nil if no C is compiled

	expected expected

	count counters
	kept  replay.Budget
	// streamBytes is the size from which on results are stored past the caches (0: see
	// streamsFrom), lookBytes the size from which on rows of the next tile are prefetched,
	// leanBytes the size from which on costly values are recomputed.
	streamBytes, lookBytes, leanBytes int64
	changes                           atomic.Uint64 // see Changes

	life       sync.RWMutex // read-locked by every call, locked by Close
	closed     bool
	target     bool            // machine code exists for the runtime's own loops, see hasTarget
	machine    bool            // kernels become machine code, too
	dots       contract.Source // functions of contractions
	toldMemory atomic.Bool     // a lack of executable memory has been reported

	denormals denormals

	programs *programs
}

func open(c runtime.Config) (*device, error) {
	if c.Threads < 0 {
		return nil, fmt.Errorf("cpu: the number of threads is %d, it must not be negative", c.Threads)
	}
	if err := machine.LevelError(); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if c.Threads == 0 {
		c.Threads = goruntime.GOMAXPROCS(0)
	}
	d := &device{cfg: c, kept: replay.Budget{Most: keptBytesAll}, programs: newPrograms(), lookBytes: 8 * tileBytes, leanBytes: tileBytes}
	d.target = d.hasTarget()
	d.machine = d.target && c.Compile.Native()
	d.dots = d.dotSource()
	d.expected.init(d) // starts background work
	d.mem = memory.New(c.MemoryLimit)
	d.denormals = denormals{c.Denormals, d.machine || d.compilesC()}
	d.caps = capsOf(c.Threads, d.denormals)
	d.wide, d.alone = newCrews(d.cfg.Threads, maxWide, d.newExecutor), newCrews(1, d.cfg.Threads, d.newExecutor)
	d.wide.GiveBack(d.wide.Lend())
	if d.compilesC() {
		d.comp = d.newCompiler()
	}
	d.tellNoTarget()
	return d, nil
}

func (d *device) newExecutor(threads int) *executor {
	return newExecutor(threads, d.mem, d.dots)
}

// Caps never change.
func (d *device) Caps() *runtime.Caps { return &d.caps }

var errClosed = fmt.Errorf("cpu: %w", runtime.ErrClosed)

// enter keeps the device open until the caller unlocks life.
func (d *device) enter() error {
	d.life.RLock()
	if d.closed {
		d.life.RUnlock()
		return errClosed
	}
	return nil
}

// Build prepares a kernel to run in tier 0. The same kernel gives the same Program for as long as
// one is in use.
func (d *device) Build(kernel runtime.Kernel) (runtime.Program, error) {
	k, ok := kernel.(*codegen.Kernel)
	if !ok {
		return nil, fmt.Errorf("cpu: a kernel has type %T, not *codegen.Kernel", kernel)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	p, err := d.programs.build(d, k)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	return p, nil
}

// Forget drops the queued compiles of a program. If runs wait for the compiler there are none.
func (d *device) Forget(prog runtime.Program) {
	p, ok := prog.(*program)
	if !ok || p.dev != d || d.comp == nil || d.waitsForCode() {
		return
	}
	p.forgotten.Store(true)
	d.count.dropped.Add(d.comp.Forget(func(k ccode.Kernel) bool { return k.(*variant).sched.prog == p }))
}

// Wait waits for compiles if background is true. All other work of the device is done when its
// call returns.
func (d *device) Wait(background bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	comp := d.comp
	d.life.RUnlock()
	if background {
		d.expected.wait()
	}
	if background && comp != nil {
		comp.Wait()
	}
	return nil
}

// Quit ends a running compiler and waits for it. Nothing more will be compiled.
func (d *device) Quit() {
	if d.comp != nil {
		d.comp.Stop()
	}
}

// Close ends a running compiler and waits for it, and frees all memory. Buffers must not be used
// any more.
func (d *device) Close() error {
	d.Quit() // before the lock: a Run may be waiting for a compile
	d.expected.stop()
	d.life.Lock()
	defer d.life.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.wide.close()
	d.alone.close()
	if d.comp != nil {
		d.comp.Close()
	}
	d.mem.Close()
	return nil
}

// report passes on a fault that the device survived.
func (d *device) report(err error) {
	if d.cfg.OnError != nil && err != nil {
		d.cfg.OnError(err)
	}
}

// capsOf describes the device. Bandwidth and costs are those of two cores of a current server,
// whatever the machine: plans depend on them, and a plan made on one machine must be found on
// another. The cost of an operation relative to that of memory decides most, and both fall with
// every core.
func capsOf(threads int, den denormals) runtime.Caps {
	c := runtime.Caps{
		Name:        "cpu",
		Description: fmt.Sprintf("%s, %d threads%s", ccode.Describe(), threads, den),
		Denormals:   den.Denormals,
		Fingerprint: "cpu/" + goruntime.GOARCH + "/go",
		DTypes:      ir.AllDTypes,
		Exact:       true,
		Totals:      true,
		MaxOperands: 32,
		MaxSlots:    maxOperands,
		MaxScalars:  64,
		MaxBody:     1 << 12,
		MaxRowOps:   rows.MaxOps,
		MaxBindings: maxPhaseOperands - maxOperands,
		MaxBuffer:   1 << 46,
		Bandwidth:   20e9,
		LaunchCost:  1e-6,
		OpCost:      0.05e-9,
		StretchCost: 3e-9,
	}
	if ccode.Supported {
		c.Fingerprint = "cpu/" + goruntime.GOARCH + "/" + ccode.ISA().Name
	}
	if den.Denormals == ir.FlushDenormals {
		c.Fingerprint += " denormals flushed"
	}
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		c.ElemSize[dt] = dt.Size()
	}
	return c
}

var errRefused = errors.New("cpu: the system refused memory for a launch's scratch buffer")
