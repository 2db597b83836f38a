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
	waiting int // launches that wait for code
	queue   []*variant
	running bool // a worker exists
	busy    bool // it is compiling
	ended   bool
	located func() (*toolchain, error) // a compiler; looks for it once
	looked  chan struct{}              // closed when it was looked for in the background; nil where it is not
	tools   *toolchain                 // that compiles, found at the first compile
	broken  error                      // why nothing will be compiled any more
	loaded  *objects
	misses  int
}

func newCompiler(d *device) *compiler {
	c := &compiler{dev: d, isa: nativeISA(), loaded: newObjects()}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = sync.NewCond(&c.mu)
	c.located = sync.OnceValues(func() (*toolchain, error) { return locate(d.cfg.Cache) })
	if c.waits() { // every kernel will want it: look while other things are made ready
		c.looked = make(chan struct{})
		go func() {
			defer close(c.looked)
			_, _ = c.located() // whoever wants it is told
			cgo.Printer()
		}()
	}
	return c
}

// want notes that a launch would have used a variant, and asks for it when it
// is worth it, which a provisional launch that does not wait never shows; where the
// launch is to wait, want returns when there is code or there will be none.
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

// await asks for a variant and returns when there is code or there will be none.
func (c *compiler) await(v *variant) {
	c.mu.Lock()
	c.waiting++
	if v.queued.CompareAndSwap(false, true) {
		c.enqueue(v)
	}
	c.mu.Unlock()
	<-v.done
	c.mu.Lock()
	c.waiting--
	c.mu.Unlock()
}

// waits reports that runs wait for compiled code.
func (c *compiler) waits() bool {
	return c.dev.cfg.Compile == runtime.CompileWait || c.dev.cfg.Tier > 0
}

// enqueue is called with mu held.
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

// fail ends the wait for a variant that gets no code.
func (c *compiler) fail(v *variant) {
	v.failed.Store(true)
	c.dev.changes.Add(1)
	close(v.done)
}

// forget drops what is queued for a program and nobody waits for.
func (c *compiler) forget(p *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(v *variant) bool {
		if v.sched.prog != p || c.waits() {
			return false
		}
		v.queued.Store(false) // it may be asked for again, when the program is
		c.dev.count.dropped.Add(1)
		return true
	})
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
	c.queue = slices.Delete(c.queue, best, best+1) // which clears the place that is left over
	return v
}

// compile makes one variant and swaps it in.
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
		v.code.Store(made.code)
	}
	d.changes.Add(1)
	close(v.done)
	if d.cfg.OnCompile != nil {
		d.cfg.OnCompile(v.sched.prog.kernel, seconds.Seconds(), err)
	}
	if err == nil {
		made.save(d.cfg.Cache) // nobody waits for it any more
	}
}

// built is what came of building a variant.
type built struct {
	code     *compiled
	source   string
	recalled bool // not compiled: an earlier process did that
	key      string
	object   []byte
}

// save puts a new object into the cache, which counts what fails.
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

// toolchain finds the compiler once. Where there is none that works, nothing
// will be compiled.
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

// wait returns when nothing is queued or compiling.
func (c *compiler) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running {
		c.changed.Wait()
	}
}

// stop drops what is queued, kills a compiler that runs and waits for it. Whoever
// waits for code gets none. It may be called again.
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
		<-c.looked // it reads the cache, which will be closed
	}
}

// unload gives the objects and the directory back. No code may run any more.
func (c *compiler) unload() {
	c.loaded.closeAll()
	if c.tools != nil {
		c.tools.remove()
	}
}
