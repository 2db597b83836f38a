//go:build cgo && unix

package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// hopelessLoads is the number of failed loads in a row, without any success so far, that end all
// compiling: a directory from which nothing can be executed will not change.
const hopelessLoads = 3

// compiler makes tier 1 in the background. It runs one compiler process at a time, and compiles
// first the variant that has touched the most bytes.
type compiler struct {
	dev    *device
	isa    *cgo.ISA
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	changed *sync.Cond
	waiting int // number of launches that wait for code
	queue   []*variant
	running bool // a worker exists
	busy    bool // the worker is compiling
	ended   bool
	located func() (*toolchain, error) // finds a compiler; searches once
	looked  chan struct{}              // closed when the background search has ended; nil if there is none
	tools   *toolchain                 // the compiler in use, found at the first compile
	broken  error                      // why nothing will be compiled any more
	loaded  *objects
	misses  int
}

func newCompiler(d *device) *compiler {
	c := &compiler{dev: d, isa: nativeISA(), loaded: newObjects()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = sync.NewCond(&c.mu)
	c.located = sync.OnceValues(func() (*toolchain, error) { return locate(d.cfg.Cache) })
	if c.waits() { // every kernel will need the compiler: search while other things are prepared
		c.looked = make(chan struct{})
		go func() {
			defer close(c.looked)
			_, _ = c.located() // callers that need a compiler get the error from their own call
			cgo.Printer()
		}()
	}
	return c
}

// want records that a launch could have used a variant, and queues the variant once that is worth
// a compile. A provisional launch never makes it worth one. With wait set, want queues the variant
// at once and returns when its code exists or its compile has failed.
func (c *compiler) want(v *variant, bytes int64, provisional, wait bool) {
	if v.failed.Load() || v.sched.prog.forgotten.Load() && !wait || (v.heat.Add(bytes+heatOfLaunch) < heatToCompile || provisional) && !wait {
		return
	}
	if wait {
		c.await(v)
	} else if v.queued.CompareAndSwap(false, true) {
		c.mu.Lock()
		c.enqueue(v)
		c.mu.Unlock()
	}
}

// await queues a variant and returns when its code exists or its compile has failed.
func (c *compiler) await(v *variant) {
	c.mu.Lock()
	c.waiting++
	v.awaited++
	if v.queued.CompareAndSwap(false, true) {
		c.enqueue(v)
	}
	c.mu.Unlock()
	<-v.done
	c.mu.Lock()
	c.waiting--
	v.awaited--
	c.mu.Unlock()
}

// waits reports that runs wait for compiled code.
func (c *compiler) waits() bool {
	return c.dev.cfg.Compile == runtime.CompileWait || c.dev.cfg.Tier > 0
}

// enqueue adds a variant to the queue and starts a worker if none runs. The caller holds mu.
func (c *compiler) enqueue(v *variant) {
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

// fail marks a variant as one without code and wakes the launches that wait for it.
func (c *compiler) fail(v *variant) {
	v.failed.Store(true)
	c.dev.changes.Add(1)
	close(v.done)
}

// forget drops the queued variants of a program, except those that a launch waits for.
func (c *compiler) forget(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(v *variant) bool {
		if v.sched.prog != p || c.waits() || v.awaited > 0 {
			return false
		}
		v.queued.Store(false) // it may be queued again if the program is used again
		c.dev.count.dropped.Add(1)
		return true
	})
}

// work compiles until the queue is empty, then ends.
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

// hottest removes the variant with the most heat from the queue and returns it.
func (c *compiler) hottest() *variant {
	best := 0
	for i, v := range c.queue {
		if v.heat.Load() > c.queue[best].heat.Load() {
			best = i
		}
	}
	v := c.queue[best]
	c.queue = slices.Delete(c.queue, best, best+1) // which clears the place at the end
	return v
}

// compile makes the code of one variant and stores it in the variant.
func (c *compiler) compile(v *variant) {
	d, begin := c.dev, time.Now()
	made, err := c.build(v)
	source := made.source
	seconds := time.Since(begin)
	if made.recalled {
		v.code.Store(made.code)
		d.changes.Add(1)
		close(v.done)
		return
	}
	d.count.compiled.Add(int64(seconds))
	if err != nil && c.ctx.Err() != nil {
		c.fail(v) // the device is closing: the kernel is not at fault
		return
	}
	if err != nil {
		err = &runtime.CompileError{Kernel: v.sched.prog.text, Source: source, Log: err.Error(), Err: err}
		d.count.fails.Add(1)
		d.report(err)
		v.failed.Store(true)
	} else {
		d.count.compiles.Add(1)
		v.code.Store(made.code)
	}
	d.changes.Add(1)
	close(v.done)
	if d.cfg.OnCompile != nil {
		d.cfg.OnCompile(v.sched.prog.kernel, seconds.Seconds(), err)
	}
	if err == nil {
		made.save(d.cfg.Cache) // after the waiting launches have been released
	}
}

// built is the result of building a variant.
type built struct {
	code     *compiled
	source   string
	recalled bool // taken from the cache: an earlier process compiled it
	key      string
	object   []byte
}

// save puts a new object into the cache. The cache counts its own failures.
func (b *built) save(cache runtime.Cache) {
	if cache == nil {
		return
	}
	cache.Put(kindObject, b.key, b.object)
}

func (c *compiler) build(v *variant) (made built, err error) {
	if err := c.loaded.room(); err != nil {
		return made, err
	}
	tools, err := c.toolchain()
	if err != nil {
		return made, err
	}
	units, phases, err := v.units()
	if err != nil {
		return made, err
	}
	plan, err := planPhases(phases)
	if err != nil {
		return made, err
	}
	made.key = tools.objectKey(cgo.Form(units, c.isa))
	if made.code = c.recall(tools, made.key, plan, units); made.code != nil {
		made.recalled = true
		return made, nil
	}
	if made.source, err = cgo.PrintUnits(units, c.isa); err != nil {
		return made, err
	}
	made.source += cgo.Probe(probeSymbol)
	if err := fault.Hit(fault.Compile); err != nil {
		return made, err
	}
	path, err := tools.compile(c.ctx, made.source)
	if errors.Is(err, errPatience) {
		c.giveUp(err)
	}
	if err != nil {
		return made, err
	}
	if made.object, err = tools.dir.take(path); err != nil {
		return made, err
	}
	made.code, err = c.open(tools, made.object, plan, units)
	if err != nil {
		c.missed(fmt.Errorf("loading: %w", err))
		return made, err
	}
	tools.worked()
	c.mu.Lock()
	c.misses = -1 << 30
	c.mu.Unlock()
	return made, nil
}

// toolchain finds a compiler and tries its flags, once. If no compiler works, nothing will be
// compiled.
func (c *compiler) toolchain() (*toolchain, error) {
	c.mu.Lock()
	tools, broken, nice := c.tools, c.broken, !c.waits() && c.waiting == 0
	c.mu.Unlock()
	if tools != nil {
		tools.nice = nice
	}
	if tools != nil || broken != nil {
		return tools, broken
	}
	tools, err := c.located()
	if err == nil {
		tools.nice = nice
		err = tools.tryFlags(c.ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		if c.ctx.Err() == nil {
			c.broken = err
		}
		return nil, err
	}
	c.tools = tools
	return tools, nil
}

// giveUp ends all compiling.
func (c *compiler) giveUp(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = why
}

func (c *compiler) missed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.misses++; c.misses >= hopelessLoads {
		c.broken = err
	}
}

// wait returns when nothing is queued or being compiled.
func (c *compiler) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running {
		c.changed.Wait()
	}
}

// stop drops the queue, kills a running compiler and waits for its end. Launches that wait for
// code get none. stop may be called again.
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
	if c.looked != nil {
		<-c.looked // the search reads the cache, which will be closed
	}
}

// unload closes the loaded objects and removes the directory. No code may run any more.
func (c *compiler) unload() {
	c.loaded.closeAll()
	if c.tools != nil {
		c.tools.remove()
	}
}
