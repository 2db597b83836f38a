// Package cpu runs kernels on the host's processors. Every kernel runs at once
// in tier 0, a block interpreter; where the machine has a C compiler, kernels
// worth it are compiled in the background and swapped in (tier 1). Both give
// the same bits, on any number of threads.
//
// With cgo a small C runtime walks lists of launches over a pool of threads;
// without it, or on systems without POSIX threads, a Go one does.
//
// Engine part: no compatibility promise; use package millrace.
package cpu

import (
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

func init() { runtime.Register("cpu", driver{}) }

type driver struct{}

// Open starts a device: threads, and a compiler where one may be used.
func (driver) Open(c runtime.Config) (runtime.Device, error) { return open(c) }

// Probe describes the machine.
func (driver) Probe() (string, error) {
	s := "cpu: " + describe()
	if path := findCompiler(); path != "" {
		return s + ", compiler " + path, nil
	}
	return s + ", no C compiler: interpreter only", nil
}

// executor runs launches that have been made ready.
type executor interface {
	// run runs them in order. Calls do not overlap.
	run(list []ready) error
	// copyBytes copies on all threads. Calls overlap neither each other nor run.
	copyBytes(dst, src []byte)
	close()
}

// device implements runtime.Device.
type device struct {
	cfg   runtime.Config
	caps  runtime.Caps
	mem   *memory
	exec  executor
	comp  *compiler // nil where nothing is compiled
	count counters

	life   sync.RWMutex // held for reading by every call, for writing by Close
	closed bool
	runMu  sync.Mutex // one call into exec, or chain, at a time
	solos  []*solo    // of chains

	buildMu  sync.Mutex
	programs map[uint64][]*program
}

func open(c runtime.Config) (*device, error) {
	if c.Threads < 0 {
		return nil, fmt.Errorf("cpu: %d threads", c.Threads)
	}
	if c.Threads == 0 {
		c.Threads = goruntime.GOMAXPROCS(0)
	}
	d := &device{cfg: c, programs: map[uint64][]*program{}}
	d.report(prepareTier0())
	d.mem = newMemory(c.MemoryLimit)
	d.caps = capsOf(c.Threads)
	var err error
	if d.exec, err = newExecutor(c.Threads); err != nil {
		return nil, err
	}
	if c.Compile != runtime.CompileOff && c.Tier >= 0 {
		d.comp = newCompiler(d)
	}
	return d, nil
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

// Build makes a kernel ready to run in tier 0. The same kernel gives the same
// Program.
func (d *device) Build(kernel runtime.Kernel) (runtime.Program, error) {
	k, ok := kernel.(*codegen.Kernel)
	if !ok {
		return nil, fmt.Errorf("cpu: kernel of type %T", kernel)
	}
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	d.buildMu.Lock()
	defer d.buildMu.Unlock()
	key, text := k.Key(), k.String()
	for _, p := range d.programs[key] {
		if p.text == text {
			return p, nil
		}
	}
	p, err := newProgram(d, k, text)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	d.programs[key] = append(d.programs[key], p)
	return p, nil
}

// Run runs launches in order and returns when they are done.
func (d *device) Run(list []runtime.Launch) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	if runtime.HasChains(list) {
		return d.runChains(list)
	}
	var few [4]ready
	todo := few[:0]
	for i := range list {
		r, err := d.prepare(&list[i])
		if err != nil {
			// Nothing has run yet: the engine may take all of it up op by op.
			return &runtime.LaunchError{Err: fmt.Errorf("cpu: launch %d: %w", i, err)}
		}
		if r.index = i; !r.empty {
			todo = append(todo, r)
		}
	}
	d.mem.begin()
	d.runMu.Lock()
	err := d.exec.run(todo)
	d.runMu.Unlock()
	d.mem.end()
	return err
}

// Wait waits for compiles where background is true; everything else a device
// does is done when its call returns.
func (d *device) Wait(background bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	comp := d.comp
	d.life.RUnlock()
	if background && comp != nil {
		comp.wait()
	}
	return nil
}

// Close ends and waits for a compiler that runs, and gives all memory back.
// Buffers must not be used any more.
func (d *device) Close() error {
	if d.comp != nil {
		d.comp.stop() // before the lock: a Run may be waiting for a compile
	}
	d.life.Lock()
	defer d.life.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.exec.close()
	for _, s := range d.solos {
		s.exec.close()
	}
	for _, ps := range d.programs {
		for _, p := range ps {
			p.free()
		}
	}
	if d.comp != nil {
		d.comp.unload()
	}
	d.mem.close()
	return nil
}

// report passes on a fault that was survived.
func (d *device) report(err error) {
	if d.cfg.OnError != nil && err != nil {
		d.cfg.OnError(err)
	}
}

// capsOf describes the device. Bandwidth and costs are those of a current
// server core, scaled by threads; autotune measures where it matters.
func capsOf(threads int) runtime.Caps {
	c := runtime.Caps{
		Name:        "cpu",
		Description: fmt.Sprintf("%s, %d threads", describe(), threads),
		Fingerprint: "cpu/" + goruntime.GOARCH + "/" + fingerprint(),
		DTypes:      ir.AllDTypes,
		Exact:       true,
		MaxOperands: 32,
		MaxScalars:  64,
		MaxBody:     1 << 12,
		MaxBuffer:   1 << 46,
		Bandwidth:   min(float64(10e9*float64(threads)), 40e9),
		LaunchCost:  1e-6,
		OpCost:      0.1e-9 / float64(threads),
	}
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		c.ElemSize[dt] = dt.Size()
	}
	return c
}

var errRefused = errors.New("cpu: no memory for the scratch of a launch")
