//go:build cgo && unix

package cpu

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// heatToCompile is how many bytes a variant's launches must have touched
// before a compiler is started for it: a compile costs some 50 ms of one core,
// in which tier 0 touches far more than this. A kernel that runs once on a
// small tensor never gets there.
const heatToCompile = 4 << 20

// Loads that fail in a row, with no success so far, end all compiling: a
// directory that cannot be executed from will not become one that can.
const hopelessLoads = 3

// compiler makes tier 1 in the background: one compiler process at a time,
// the variant that has touched most first.
type compiler struct {
	dev    *device
	isa    *cgo.ISA
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	changed *sync.Cond
	queue   []*variant
	running bool // a worker exists
	busy    bool // it is compiling
	ended   bool
	tools   *toolchain // found at the first compile
	broken  error      // why nothing will be compiled any more
	loaded  []unsafe.Pointer
	misses  int
}

func newCompiler(d *device) *compiler {
	c := &compiler{dev: d, isa: nativeISA()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = sync.NewCond(&c.mu)
	return c
}

// want notes that a launch would have used a variant, and asks for it when it
// is worth it; where the device was opened to wait, it returns when there is
// code or there will be none.
func (c *compiler) want(v *variant, bytes int64) {
	wait := c.dev.cfg.Compile == runtime.CompileWait || c.dev.cfg.Tier > 0
	if v.failed.Load() || v.heat.Add(bytes) < heatToCompile && !wait {
		return
	}
	if v.queued.CompareAndSwap(false, true) {
		c.enqueue(v)
	}
	if wait {
		<-v.done
	}
}

func (c *compiler) enqueue(v *variant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.broken != nil {
		c.fail(v)
		return
	}
	c.queue = append(c.queue, v)
	if !c.running {
		c.running = true
		go c.work()
	}
}

// fail ends the wait for a variant that gets no code.
func (c *compiler) fail(v *variant) {
	v.failed.Store(true)
	close(v.done)
}

// work compiles until nothing is asked for, then goes away.
func (c *compiler) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 && !c.ended {
		v := c.hottest()
		c.busy = true
		c.mu.Unlock()
		c.compile(v)
		c.mu.Lock()
		c.busy = false
		if c.broken != nil {
			for _, v := range c.queue {
				c.fail(v)
			}
			c.queue = nil
		}
	}
	c.running = false
	c.changed.Broadcast()
}

// hottest takes a variant from the queue.
func (c *compiler) hottest() *variant {
	best := 0
	for i, v := range c.queue {
		if v.heat.Load() > c.queue[best].heat.Load() {
			best = i
		}
	}
	v := c.queue[best]
	c.queue = append(c.queue[:best], c.queue[best+1:]...)
	return v
}

// compile makes one variant and swaps it in.
func (c *compiler) compile(v *variant) {
	d, begin := c.dev, time.Now()
	code, source, err := c.build(v)
	seconds := time.Since(begin)
	d.count.compiled.Add(int64(seconds))
	if err != nil && c.ctx.Err() != nil {
		c.fail(v) // closing: no fault of the kernel
		return
	}
	if err != nil {
		err = &runtime.CompileError{Kernel: v.sched.prog.text, Source: source, Log: err.Error(), Err: err}
		d.count.fails.Add(1)
		d.report(err)
		v.failed.Store(true)
	} else {
		d.count.compiles.Add(1)
		v.code.Store(code)
	}
	close(v.done)
	if d.cfg.OnCompile != nil {
		d.cfg.OnCompile(v.sched.prog.kernel, seconds.Seconds(), err)
	}
}

// source is the C of a variant, which depends on nothing else.
func (c *compiler) source(v *variant) (string, error) {
	units, _, err := v.units()
	if err != nil {
		return "", err
	}
	return cgo.PrintUnits(units, c.isa)
}

func (c *compiler) build(v *variant) (code *compiled, source string, err error) {
	tools, err := c.toolchain()
	if err != nil {
		return nil, "", err
	}
	units, phases, err := v.units()
	if err != nil {
		return nil, "", err
	}
	plan, err := planPhases(phases)
	if err != nil {
		return nil, "", err
	}
	if source, err = cgo.PrintUnits(units, c.isa); err != nil {
		return nil, "", err
	}
	source += cgo.Probe(probeSymbol)
	if err := fault.Hit(fault.Compile); err != nil {
		return nil, source, err
	}
	path, err := tools.compile(c.ctx, source)
	if err != nil {
		return nil, source, err
	}
	names := make([]string, len(units))
	for i := range units {
		names[i] = units[i].Name
	}
	handle, funcs, err := load(path, names...)
	if err != nil {
		c.missed(fmt.Errorf("loading: %w", err))
		return nil, source, err
	}
	c.mu.Lock()
	c.misses = -1 << 30
	c.loaded = append(c.loaded, handle)
	c.mu.Unlock()
	return &compiled{plan, funcs}, source, nil
}

// toolchain finds the compiler once. Where there is none that works, nothing
// will be compiled.
func (c *compiler) toolchain() (*toolchain, error) {
	c.mu.Lock()
	tools, broken := c.tools, c.broken
	c.mu.Unlock()
	if tools != nil || broken != nil {
		return tools, broken
	}
	tools, err := newToolchain(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = tools
	if err != nil && c.ctx.Err() == nil {
		c.broken = err
	}
	return tools, err
}

func (c *compiler) missed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.misses++; c.misses >= hopelessLoads {
		c.broken = err
	}
}

// wait returns when nothing is queued or compiling.
func (c *compiler) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running {
		c.changed.Wait()
	}
}

// stop drops what is queued, kills a compiler that runs and waits for it.
func (c *compiler) stop() {
	c.mu.Lock()
	c.ended = true
	for _, v := range c.queue {
		c.fail(v)
	}
	c.queue = nil
	c.mu.Unlock()
	c.cancel()
	c.wait()
}

// unload gives the objects and the directory back. No code may run any more.
func (c *compiler) unload() {
	for _, h := range c.loaded {
		unload(h)
	}
	c.loaded = nil
	if c.tools != nil {
		c.tools.remove()
	}
}
