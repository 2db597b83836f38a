package gpurun

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel with its shaders so far.
type program struct {
	dev     *Runner
	kernel  *codegen.Kernel // as fusion wrote it
	ready   *codegen.Kernel // in the printer's form
	groups  bool            // rows may use subgroups
	factors ir.DType        // of a contraction by matrix units, 16-bit floats or float32; or Invalid
	tile    *shader.Tile    // used whatever the launch; usually nil
	lanes   int             // largest number of points per step

	mu        sync.Mutex
	variants  map[string]*variant
	forgotten bool // no known plan uses it
}

// variant is a shader in use.
type variant struct {
	shader.Variant
	source string
	noted  string      // key of its note; "" before it has one; guarded by the notes' lock
	told   atomic.Bool // noted is not "", which saves taking the lock
	*compiled
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// Build lowers a kernel and finds out whether shaders can express it. The first Run compiles the
// shaders, because their text depends on the layouts of operands.
func (d *Runner) Build(k runtime.Kernel) (runtime.Program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	c, ok := k.(*codegen.Kernel)
	if !ok {
		return nil, d.errorf("a kernel has type %T, not *codegen.Kernel", k)
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
		return fail(d.errorf("kernels with totals are not supported"))
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return fail(err)
	}
	ready, err := shader.Prepare(c)
	if err != nil {
		return fail(err)
	}
	p := &program{dev: d, kernel: c, ready: ready, groups: d.lang.HasSubgroups(ready), lanes: 4, variants: map[string]*variant{}}
	p.factors = d.units.of(ready)
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

// nowhere is the memory of a launch that is decomposed but not run. Each pointer to one is a buffer of
// its own.
type nowhere struct{ bytes int64 }

func (n *nowhere) Bytes() int64 { return n.bytes }

// tryApart finds out whether shaders can express all kernels that a program's launches are
// decomposed into.
func (d *Runner) tryApart(p *program) error {
	b := &batch{dev: d}
	s := splitter{
		limits:  d.limits,
		emit:    func(*codegen.Kernel, *piece) error { return nil },
		scratch: func(n int64) (runtime.Buffer, error) { return &nowhere{n}, nil },
		build:   b.build,
		sorter: func(x sortDispatch) error {
			_, _, err := x.Print(d.lang)
			return err
		},
	}
	l := runtime.Launch{Prog: p, Rank: 2, Kept: 1, Args: make([]runtime.Access, len(p.ready.Operands))}
	l.Dims[0], l.Dims[1] = 1, 2
	for i := range l.Args {
		l.Args[i].Buf = &nowhere{1 << 10}
	}
	return s.launch(p.ready, &l)
}

// variantFor finds or makes the shader of a piece and adds it to b's uses.
func (p *program) variantFor(b *batch, pc *piece) (*variant, error) {
	choice, err := p.chosen(pc)
	if err != nil {
		return nil, err
	}
	v, err := p.variant(b, choice.Key(), func() (*variant, error) {
		source, err := shader.Print(p.dev.lang, p.ready, &choice)
		return &variant{Variant: choice, source: source}, err
	})
	switch {
	case !isSource(err) || p.tile != nil:
	case choice.Subgroups || choice.Cluster > 1:
		p.dev.refuse(err)
		return p.variantFor(b, pc)
	case choice.Tile.Matrix != shader.Matrix{}:
		p.dev.refuseUnits(err)
		return p.variantFor(b, pc)
	}
	return v, err
}

// isSource reports whether the driver's compiler rejected a text.
func isSource(err error) bool {
	var bad *SourceError
	return errors.As(err, &bad)
}

// refuse handles a shader with subgroups that the driver does not compile: no more are made.
func (d *Runner) refuse(err error) {
	d.stats.fallbacks.Add(1)
	if !d.refused.Swap(true) && d.cfg.OnError != nil {
		d.cfg.OnError(d.errorf("shaders no longer use subgroups: %w", err))
	}
}

// variant finds the variant of a key, or compiles the one that print returns. The lock is not held
// while compiling: requests for other variants proceed, and forgetting the program does not wait.
func (p *program) variant(b *batch, key string, print func() (*variant, error)) (*variant, error) {
	d := p.dev
	p.mu.Lock()
	v := p.variants[key]
	if v != nil {
		b.use(v.compiled)
	}
	p.mu.Unlock()
	if v != nil {
		return v, nil
	}
	v, err := print()
	if err == nil {
		err = fault.Hit(fault.Compile)
	}
	if err == nil {
		v.compiled, err = d.compile(p.kernel, v.source, v.Bindings)
	}
	if err != nil {
		return nil, d.compileError(p.kernel.String(), v.source, err)
	}
	b.uses = append(b.uses, v.compiled)
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.variants[key]; other != nil { // another Run was faster
		b.use(other.compiled)
		return other, nil
	}
	d.shaders.use(v.compiled)
	p.variants[key] = v
	if p.forgotten { // and runs once more: see Forget
		d.forget(p)
	}
	return v, nil
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
