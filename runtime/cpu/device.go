// Package cpu runs kernels on the host's processors. A kernel can run at once in tier 0, a block
// interpreter. Later its code (tier 1) replaces the interpreter: machine code made by this process
// (see targets.go), or, if the machine has a C compiler, an object compiled in the background. All
// tiers give the same bits, on any number of threads.
//
// A runtime in Go walks lists of launches over a pool of threads. It calls compiled C kernels as
// functions, as it does machine code.
//
// Engine part: no compatibility promise; use package millrace.
package cpu

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
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
	return "cpu: " + describe() + ", " + targets(), nil
}

// device implements runtime.Device.
type device struct {
	cfg   runtime.Config
	caps  runtime.Caps
	mem   *memory
	wide  *crews // crews of all threads
	alone *crews // crews of one thread, the calling one
	crowd crowd
	comp  *compiler // nil if no C is compiled
	notes *notes    // nil if no notes are kept

	expected expected

	count counters
	kept  keptMemory
	// streamBytes is the size from which on results are stored past the caches (0: see
	// streamsFrom), lookBytes the size from which on rows of the next tile are prefetched,
	// leanBytes the size from which on costly values are recomputed.
	streamBytes, lookBytes, leanBytes int64
	changes                           atomic.Uint64 // see Changes

	life       sync.RWMutex // read-locked by every call, locked by Close
	closed     bool
	target     bool        // machine code exists for the runtime's own loops, see hasTarget
	machine    bool        // kernels become machine code, too
	dots       dotSource   // functions of contractions
	toldMemory atomic.Bool // a lack of executable memory has been reported

	denormals denormals

	programs *programs
}

func open(c runtime.Config) (*device, error) {
	if c.Threads < 0 {
		return nil, fmt.Errorf("cpu: %d threads", c.Threads)
	}
	if err := machine.LevelError(); err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	if c.Threads == 0 {
		c.Threads = goruntime.GOMAXPROCS(0)
	}
	d := &device{cfg: c, kept: keptMemory{most: keptBytesAll}, programs: newPrograms(), lookBytes: 8 * tileBytes, leanBytes: tileBytes}
	d.target = d.hasTarget()
	d.machine = d.target && c.Compile.Native()
	d.dots = d.dotSource()
	d.expected.init(d) // starts background work
	d.mem = newMemory(c.MemoryLimit)
	d.denormals = denormals{c.Denormals, d.machine || d.compilesC()}
	d.caps = capsOf(c.Threads, d.denormals)
	d.wide, d.alone = newCrews(d.cfg.Threads, maxWide, d.newExecutor), newCrews(1, d.cfg.Threads, d.newExecutor)
	d.wide.giveBack(d.wide.lend())
	if d.compilesC() {
		d.comp = newCompiler(d)
	}
	d.tellNoTarget()
	if c.Tier >= 0 {
		d.notes = newNotes(c.Cache)
	}
	d.openShipped()
	return d, nil
}

func (d *device) newExecutor(threads int) *executor {
	e := newExecutor(threads)
	e.mem, e.dotSource = d.mem, d.dots
	return e
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
		return nil, fmt.Errorf("cpu: kernel of type %T", kernel)
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
	if !ok || p.dev != d || d.comp == nil || d.cfg.Compile == runtime.CompileWait || d.cfg.Tier > 0 {
		return
	}
	p.forgotten.Store(true)
	d.comp.forget(p)
}

// Run runs launches in order and returns when they are done.
func (d *device) Run(list []runtime.Launch) error {
	if d.mem.shared.Load() > 0 {
		var pin goruntime.Pinner
		defer pin.Unpin()
		d.pinShared(&pin, list)
	}
	if runtime.HasChains(list) { // EachChain calls Run again for the launches between chains
		return runtime.EachChain(list, d.Run, d.runChain)
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	crews, threads := d.wide, d.threadsOf()
	crowded := d.crowd.enter()
	defer d.crowd.leave()
	one := forOne(list, crowded)
	var inTurn *ordering
	if !crowded || !one {
		if inTurn = order(list, threads); inTurn != nil {
			one = false
			defer inTurn.release()
		}
	}
	if one {
		crews, threads = d.alone, 1
	} else {
		crews.rouse()
	}
	room := readies.Get().(*[]ready)
	readied := (*room)[:0]
	defer func() {
		for i := range readied {
			if o := readied[i].dot; o != nil {
				dotOrders.Put(o)
			}
		}
		clear(readied)
		*room = readied
		readies.Put(room)
	}()
	for i := range list {
		t, n := turn{at: i}, threads
		if inTurn != nil {
			if t = inTurn.turns[i]; t.wave > 0 {
				n = 1
			}
		}
		r, err := d.prepareFor(&list[t.at], n)
		if err != nil {
			// Nothing has run yet: the engine may run the whole list op by op.
			return &runtime.LaunchError{Err: fmt.Errorf("cpu: launch %d: %w", t.at, err)}
		}
		if r.index, r.wave = t.at, t.wave; r.empty {
			continue
		}
		if readied = append(readied, r); r.wave > 0 {
			d.count.grouped.Add(1)
		}
	}
	w := crews.lend()
	err := crews.run(&w, readied)
	crews.giveBack(w)
	return err
}

// readies reuses the lists of launches in Run.
var readies = sync.Pool{New: func() any { return new([]ready) }}

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
		comp.wait()
	}
	if background {
		d.notes.wait()
	}
	return nil
}

// Quit ends a running compiler and waits for it. Nothing more will be compiled.
func (d *device) Quit() {
	if d.comp != nil {
		d.comp.stop()
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
	d.notes.wait()
	d.wide.close()
	d.alone.close()
	if d.comp != nil {
		d.comp.unload()
	}
	d.mem.close()
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
		Description: fmt.Sprintf("%s, %d threads%s", describe(), threads, den),
		Denormals:   den.Denormals,
		Fingerprint: "cpu/" + goruntime.GOARCH + "/" + fingerprint(),
		DTypes:      ir.AllDTypes,
		Exact:       true,
		Totals:      true,
		MaxOperands: 32,
		MaxSlots:    maxOperands,
		MaxScalars:  64,
		MaxBody:     1 << 12,
		MaxRowOps:   maxReduces,
		MaxBindings: maxPhaseOperands - maxOperands,
		MaxBuffer:   1 << 46,
		Bandwidth:   20e9,
		LaunchCost:  1e-6,
		OpCost:      0.05e-9,
		StretchCost: 3e-9,
	}
	if den.Denormals == ir.FlushDenormals {
		c.Fingerprint += " denormals flushed"
	}
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		c.ElemSize[dt] = dt.Size()
	}
	return c
}

var errRefused = errors.New("cpu: no memory for the scratch of a launch")
