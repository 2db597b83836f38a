package gpurun

import (
	"errors"
	"sync"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel with the shaders made for it so far.
type program struct {
	dev    *Runner
	kernel *codegen.Kernel // as fusion wrote it
	ready  *codegen.Kernel // as the printer wants it
	lanes  int             // the most a shader of it can compute per step

	mu        sync.Mutex
	variants  map[string]*variant
	forgotten bool // no known plan uses it
}

// variant is a shader in use.
type variant struct {
	shader.Variant
	source string
	noted  string // the key of its note; "" as long as there is none
	*compiled
}

// compiled is a shader, and how many variants of programs use it.
type compiled struct {
	pipe  Pipeline
	users int
	kept  bool // it came from the cache, or goes there
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// Build lowers a kernel and finds out whether shaders can express it. Shaders are
// compiled by the first Run that needs them, since their text depends on how
// operands lie.
func (d *Runner) Build(k runtime.Kernel) (runtime.Program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	c, ok := k.(*codegen.Kernel)
	if !ok {
		return nil, d.errorf("%T is no kernel", k)
	}
	p, err := d.build(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (d *Runner) build(c *codegen.Kernel) (*program, error) {
	fail := func(err error) (*program, error) {
		d.stats.compileFails.Add(1)
		return nil, &runtime.CompileError{Kernel: c.String(), Log: err.Error(), Err: err}
	}
	if len(c.Reduces) > 0 {
		return fail(d.errorf("a kernel with totals"))
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return fail(err)
	}
	ready, err := shader.Prepare(c)
	if err != nil {
		return fail(err)
	}
	p := &program{dev: d, kernel: c, ready: ready, lanes: 4, variants: map[string]*variant{}}
	if sorts(ready) {
		if err := d.tryApart(p); err != nil {
			return fail(err)
		}
		return p, nil
	}
	for ; ; p.lanes = 1 {
		v := shader.Dense(ready, p.lanes)
		if _, err = shader.Print(d.lang, ready, &v); err == nil {
			return p, nil
		}
		if p.lanes == 1 {
			return fail(err)
		}
	}
}

// nowhere is memory of a launch that is taken apart but not run.
type nowhere int64

func (n nowhere) Bytes() int64 { return int64(n) }

// tryApart finds out whether shaders can express all that a program's launches
// are taken apart into. It must not be called with d.mu held.
func (d *Runner) tryApart(p *program) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &batch{dev: d}
	s := splitter{
		limits:  d.limits,
		emit:    func(*codegen.Kernel, *piece) error { return nil },
		scratch: func(n int64) (runtime.Buffer, error) { return nowhere(n), nil },
		build:   b.build,
		sorter: func(x sortDispatch) error {
			_, _, err := shader.Sort(d.lang, x.step, x.dt, x.descending)
			return err
		},
	}
	l := runtime.Launch{Prog: p, Rank: 2, Kept: 1, Args: make([]runtime.Access, len(p.ready.Operands))}
	l.Dims[0], l.Dims[1] = 1, 2
	for i := range l.Args {
		l.Args[i].Buf = nowhere(1 << 10)
	}
	return s.launch(p.ready, &l)
}

// variantFor finds or makes the shader for a piece. The caller holds d.mu.
func (p *program) variantFor(pc *piece) (*variant, error) {
	choice, err := p.chosen(pc)
	if err != nil {
		return nil, err
	}
	key := choice.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.variants[key]; v != nil {
		return v, nil
	}
	source, err := shader.Print(p.dev.lang, p.ready, &choice)
	if err == nil {
		err = fault.Hit(fault.Compile)
	}
	var sh *compiled
	if err == nil {
		sh, err = p.dev.compile(p.kernel, source, choice.Bindings)
	}
	if err != nil {
		return nil, p.dev.compileError(p.kernel.String(), source, err)
	}
	v := &variant{Variant: choice, source: source, compiled: sh}
	sh.users++
	p.variants[key] = v
	if p.forgotten { // and is run once more: see Forget
		p.dev.forget(p)
	}
	return v, nil
}

// Forget lets the next Run give the shaders of a program back: they take a
// hundred times what the program itself does. Whoever still runs it has them
// compiled again. The engine's locks are held, so that this waits for no Run.
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

// sweep gives the shaders back that only forgotten programs use. The caller holds
// d.mu, and has nothing to submit.
func (d *Runner) sweep() {
	d.listMu.Lock()
	list := d.forgotten
	d.forgotten = nil
	d.listMu.Unlock()
	for _, p := range list {
		p.mu.Lock()
		d.notes.forget(p.variants)
		for _, v := range p.variants {
			if v.users--; v.users == 0 {
				delete(d.shaders, v.source)
				v.pipe.Release()
			}
		}
		clear(p.variants)
		p.mu.Unlock()
	}
}

// compileError wraps what the printer or the native compiler refused. Faults
// of the device pass as they are.
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

// compile compiles a text, or finds it compiled, here or by an earlier process. kernel is what it is for, nil for
// shaders that are no kernel's, which nobody counts the users of. The caller holds
// d.mu.
func (d *Runner) compile(kernel *codegen.Kernel, source string, list []shader.Binding) (*compiled, error) {
	if sh := d.shaders[source]; sh != nil {
		return sh, nil
	}
	bindings := make([]Binding, len(list)+1)
	for i, b := range list {
		if b.Write {
			bindings[i] = ReadWrite
		}
	}
	bindings[len(list)] = Params
	if pipe, err := d.kept(source, bindings); pipe != nil || err != nil {
		sh := &compiled{pipe: pipe, kept: true}
		if err == nil {
			d.shaders[source] = sh
		}
		return sh, err
	}
	start := time.Now()
	pipe, err := d.gpu.NewPipeline(source, bindings)
	took := time.Since(start)
	if d.cfg.OnCompile != nil && kernel != nil {
		d.cfg.OnCompile(kernel, took.Seconds(), err)
	}
	if err != nil {
		return nil, err
	}
	d.stats.compiles.Add(1)
	d.stats.compile.Add(int64(took))
	sh := &compiled{pipe: pipe}
	d.shaders[source] = sh
	return sh, nil
}

// Source lists the shaders made for a program so far.
func (d *Runner) Source(prog runtime.Program) []runtime.Variant {
	p, ok := prog.(*program)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]runtime.Variant, 0, len(p.variants))
	for key, v := range p.variants {
		list = append(list, runtime.Variant{Tier: d.lang.Name, Class: key, Source: v.source})
	}
	return list
}
