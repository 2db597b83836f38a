package gpurun

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// A driver's compiler takes up to a second, and no lock is held meanwhile. A request for a text
// that is being compiled waits for that compile; other requests proceed.
//
// A shader is released with its last use. Uses are variants of programs, batches not submitted yet,
// and the prebuild that compiled it, until the first request takes over that use. A program may
// therefore be forgotten at any time: a current Run holds the shaders that it will submit.

// shaders are those of a device, by text. Failed compiles are not stored: the next request tries
// again.
type shaders struct {
	mu   sync.Mutex
	list map[string]*compiled
}

// compiled is a shader; it is complete when done is closed.
type compiled struct {
	source string
	done   chan struct{}
	pipe   Pipeline
	err    error

	// Guarded by the lock of shaders.
	users int
	ahead bool // one of users is the prebuild
	kept  bool // it came from the cache, or is being stored there
}

// claim finds a shader, or registers that the caller compiles it: if mine is true the caller must
// call finish. The shader gets one more use, the caller's.
func (x *shaders) claim(source string) (sh *compiled, mine bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh = x.list[source]
	switch {
	case sh == nil:
		sh, mine = x.add(source), true
	case sh.ahead: // the first request takes over its use
		sh.ahead = false
	default:
		sh.users++
	}
	return sh, mine
}

// claimAhead is claim for a prebuild; nil if the shader exists. The shader has two uses: one for
// the first request, and the caller's own.
func (x *shaders) claimAhead(source string) *compiled {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list[source] != nil {
		return nil
	}
	sh := x.add(source)
	sh.users, sh.ahead = 2, true
	return sh
}

// add adds a shader. The caller holds the lock.
func (x *shaders) add(source string) *compiled {
	sh := &compiled{source: source, done: make(chan struct{}), users: 1}
	x.list[source] = sh
	return sh
}

// finish completes a claimed shader.
func (x *shaders) finish(sh *compiled) {
	if sh.err != nil {
		x.mu.Lock()
		delete(x.list, sh.source)
		x.mu.Unlock()
	}
	close(sh.done)
}

// use adds a use of a shader that has some.
func (x *shaders) use(sh *compiled) {
	x.mu.Lock()
	sh.users++
	x.mu.Unlock()
}

// drop ends one use of each shader. It calls the driver without the lock, because the driver may be
// busy compiling.
func (x *shaders) drop(list ...*compiled) {
	var gone []Pipeline
	x.mu.Lock()
	for _, sh := range list {
		if sh.users--; sh.users == 0 && sh.err == nil {
			delete(x.list, sh.source)
			gone = append(gone, sh.pipe)
		}
	}
	x.mu.Unlock()
	for _, p := range gone {
		p.Release()
	}
}

// keeps reports whether the caller should store the shader's binary: it is neither stored nor being
// stored. It then counts as being stored.
func (x *shaders) keeps(sh *compiled) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	was := sh.kept
	sh.kept = true
	return !was
}

// count is the number of shaders.
func (x *shaders) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list)
}

// compile compiles a text, or finds it compiled here or by an earlier process, and adds a use for
// the caller. kernel is the kernel that it is for.
func (d *Runner) compile(kernel *codegen.Kernel, source string, list []shader.Binding) (*compiled, error) {
	sh, mine := d.shaders.claim(source)
	if mine {
		d.finish(sh, kernel, list)
	}
	<-sh.done
	return sh, sh.err
}

// finish compiles a claimed shader.
func (d *Runner) finish(sh *compiled, kernel *codegen.Kernel, list []shader.Binding) {
	defer d.shaders.finish(sh)
	defer d.guard(&sh.err)
	bindings := make([]Binding, len(list)+1)
	for i, b := range list {
		if b.Write {
			bindings[i] = ReadWrite
		}
	}
	bindings[len(list)] = Params
	if sh.pipe, sh.err = d.kept(sh.source, bindings); sh.pipe != nil || sh.err != nil {
		sh.kept = true // no other goroutine reads it before done is closed
		return
	}
	start := time.Now()
	sh.err = d.memory.again(func() (err error) {
		sh.pipe, err = d.gpu.NewPipeline(sh.source, bindings)
		return err
	})
	took := time.Since(start)
	if d.cfg.OnCompile != nil && kernel != nil {
		d.cfg.OnCompile(kernel, took.Seconds(), sh.err)
	}
	if sh.err == nil {
		d.stats.compiles.Add(1)
		d.stats.compile.Add(int64(took))
	}
}

// guard, deferred, turns a panic into an error and loses the device: its state is unknown, and
// others may wait for it.
func (d *Runner) guard(err *error) {
	if r := recover(); r != nil {
		why := fmt.Errorf("%w: panic: %v\n%s", ErrLost, r, debug.Stack())
		d.gpu.Lose(why)
		*err = d.deviceError(why)
	}
}

// compileError wraps an error of the printer or the native compiler. Faults of the device pass
// unchanged.
func (d *Runner) compileError(kernel, source string, err error) error {
	if e := d.deviceError(err); e != err {
		return e
	}
	d.stats.compileFails.Add(1)
	log := err.Error()
	var se *SourceError
	if errors.As(err, &se) {
		log = se.Log
	}
	return &runtime.CompileError{Kernel: kernel, Source: source, Log: log, Err: err}
}

// Forget lets the next Run release the shaders of a program, which take a hundred times the
// program's memory. A later run of the program compiles them again. The engine's locks are held, so
// Forget does not wait for a Run.
func (d *Runner) Forget(prog runtime.Program) {
	if p, ok := prog.(*program); ok && p.dev == d {
		p.mu.Lock()
		p.forgotten = true
		p.mu.Unlock()
		d.forget(p)
	}
}

func (d *Runner) forget(p *program) {
	d.listMu.Lock()
	defer d.listMu.Unlock()
	d.forgotten = append(d.forgotten, p)
}

// sweep releases shaders that only forgotten programs use.
func (d *Runner) sweep() {
	d.listMu.Lock()
	list := d.forgotten
	d.forgotten = nil
	d.listMu.Unlock()
	for _, p := range list {
		p.mu.Lock()
		variants := p.variants
		p.variants = map[string]*variant{}
		p.mu.Unlock()
		d.repeats.forget(p)
		d.notes.forget(variants)
		for _, v := range variants {
			d.shaders.drop(v.compiled)
		}
	}
}
