//go:build cgo && unix

package ccode

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

// Supported reports that this build can run kernels compiled from C.
const Supported = true

// hopelessLoads is the number of failed loads in a row, without any success so far, that end all
// compiling: a directory from which nothing can be executed will not change.
const hopelessLoads = 3

// Compiler compiles kernels in the background, one at a time, the hottest first.
type Compiler struct {
	cfg    Config
	isa    *cgo.ISA
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	changed *sync.Cond
	waiting int // number of launches that wait for code
	queue   []*Job
	running bool // a worker exists
	ended   bool
	located func() (*toolchain, error) // finds a compiler; searches once
	looked  chan struct{}              // closed when the background search has ended; nil if there is none
	tools   *toolchain                 // the compiler in use, found at the first compile
	broken  error                      // why nothing will be compiled any more
	loaded  *objects
	misses  int
}

// New returns a compiler that has no jobs yet; nil if this build loads no objects.
func New(cfg Config) *Compiler {
	c := &Compiler{cfg: cfg, isa: ISA(), loaded: newObjects(cfg.Limits.Objects)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.changed = sync.NewCond(&c.mu)
	c.located = sync.OnceValues(func() (*toolchain, error) { return locate(&cfg) })
	if cfg.Waits { // every kernel will need the compiler: search while other things are prepared
		c.looked = make(chan struct{})
		go func() {
			defer close(c.looked)
			_, _ = c.located() // callers that need a compiler get the error from their own call
			cgo.Printer()
		}()
	}
	return c
}

// Add queues a job, unless it has been queued before.
func (c *Compiler) Add(j *Job) {
	if j.queued.CompareAndSwap(false, true) {
		c.mu.Lock()
		c.enqueue(j)
		c.mu.Unlock()
	}
}

// Await queues a job, unless it has been queued before, and returns when it has ended.
func (c *Compiler) Await(j *Job) {
	c.mu.Lock()
	c.waiting++
	j.awaited++
	if j.queued.CompareAndSwap(false, true) {
		c.enqueue(j)
	}
	c.mu.Unlock()
	<-j.done
	c.mu.Lock()
	c.waiting--
	j.awaited--
	c.mu.Unlock()
}

// enqueue adds a job to the queue and starts a worker if none runs. The caller holds mu.
func (c *Compiler) enqueue(j *Job) {
	if c.ended || c.broken != nil {
		j.end(Result{})
		return
	}
	c.queue = append(c.queue, j)
	if !c.running {
		c.running = true
		go c.work()
	}
}

// end passes the outcome to the kernel and releases the launches that wait for the job.
func (j *Job) end(r Result) {
	j.kernel.Finish(r)
	close(j.done)
}

// Forget drops the queued jobs of the kernels for which of returns true, except those that a launch
// waits for. It returns their number.
func (c *Compiler) Forget(of func(Kernel) bool) (dropped int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(j *Job) bool {
		if !of(j.kernel) || j.awaited > 0 {
			return false
		}
		j.queued.Store(false) // it may be added again
		dropped++
		return true
	})
	return dropped
}

// work compiles until the queue is empty, then ends.
func (c *Compiler) work() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 && !c.ended {
		j := c.hottest()
		c.mu.Unlock()
		c.compile(j)
		c.mu.Lock()
		if c.broken != nil {
			c.refuse()
		}
	}
	c.running = false
	c.changed.Broadcast()
}

// hottest removes the job with the most heat from the queue and returns it.
func (c *Compiler) hottest() *Job {
	best := 0
	for i, j := range c.queue {
		if j.kernel.Heat() > c.queue[best].kernel.Heat() {
			best = i
		}
	}
	j := c.queue[best]
	c.queue = slices.Delete(c.queue, best, best+1) // which clears the place at the end
	return j
}

// compile makes the code of one kernel and passes it on.
func (c *Compiler) compile(j *Job) {
	begin := time.Now()
	made, err := c.build(j.kernel)
	took := time.Since(begin)
	r := Result{Phases: made.phases, Fallback: made.fallback, Took: took}
	switch {
	case made.recalled:
		r.Recalled, r.Took = true, 0
		j.end(r)
		return
	case err != nil && c.ctx.Err() != nil: // the compiler is being stopped: the kernel is not at fault
		j.end(Result{Took: took})
		return
	case err != nil:
		err = &runtime.CompileError{Kernel: j.kernel.String(), Source: made.source, Log: err.Error(), Err: err}
		j.end(Result{Err: err, Took: took})
	default:
		j.end(r)
	}
	if c.cfg.OnCompile != nil {
		c.cfg.OnCompile(j.kernel, took, err)
	}
	if err == nil {
		made.save(c.cfg.Cache) // after the waiting launches have been released
	}
}

// built is the result of building a kernel.
type built struct {
	phases   []*Phase
	source   string
	recalled bool // taken from the cache: an earlier process compiled it
	fallback bool // loaded from a directory
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

func (c *Compiler) build(k Kernel) (made built, err error) {
	if err := c.loaded.room(); err != nil {
		return made, err
	}
	tools, err := c.toolchain()
	if err != nil {
		return made, err
	}
	units, err := k.Units()
	if err != nil {
		return made, err
	}
	made.key = tools.objectKey(cgo.Form(units, c.isa))
	if c.recall(&made, tools, units) {
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
	if err = c.open(&made, tools, units); err != nil {
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
func (c *Compiler) toolchain() (*toolchain, error) {
	c.mu.Lock()
	tools, broken, nice := c.tools, c.broken, !c.cfg.Waits && c.waiting == 0
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
func (c *Compiler) giveUp(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = why
}

func (c *Compiler) missed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.misses++; c.misses >= hopelessLoads {
		c.broken = err
	}
}

// Wait returns when nothing is queued or being compiled.
func (c *Compiler) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running {
		c.changed.Wait()
	}
}

// Stop drops the queue, kills a running compiler and waits for its end. Launches that wait for
// code get none. Stop may be called again.
func (c *Compiler) Stop() {
	c.mu.Lock()
	c.ended = true
	c.refuse()
	c.mu.Unlock()
	c.cancel()
	c.Wait()
	if c.looked != nil {
		<-c.looked // the search reads the cache, which will be closed
	}
}

// refuse ends the queued jobs without code. The caller holds mu.
func (c *Compiler) refuse() {
	for _, j := range c.queue {
		j.end(Result{})
	}
	c.queue = nil
}

// Close closes the loaded objects and removes the directory, after Stop. No code may run any more.
func (c *Compiler) Close() {
	c.loaded.closeAll()
	if c.tools != nil {
		c.tools.remove()
	}
}
