//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/webgpu/internal/gpu"
)

// program is a kernel with the shaders made for it so far.
type program struct {
	dev    *device
	kernel *codegen.Kernel // as fusion wrote it
	ready  *codegen.Kernel // as the printer wants it
	lanes  int             // the most a shader of it can compute per step

	mu       sync.Mutex
	variants map[string]*variant
}

// variant is a shader in use.
type variant struct {
	wgsl.Variant
	source string
	pipe   *gpu.Pipeline
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// Build lowers a kernel and finds out whether WGSL can express it. Shaders are
// compiled by the first Run that needs them, since their text depends on how
// operands lie.
func (d *device) Build(k runtime.Kernel) (runtime.Program, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	c, ok := k.(*codegen.Kernel)
	if !ok {
		return nil, fmt.Errorf("webgpu: %T is no kernel", k)
	}
	p, err := d.build(c)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (d *device) build(c *codegen.Kernel) (*program, error) {
	fail := func(err error) (*program, error) {
		d.stats.compileFails.Add(1)
		return nil, &runtime.CompileError{Kernel: c.String(), Log: err.Error(), Err: err}
	}
	if err := fault.Hit(fault.Compile); err != nil {
		return fail(err)
	}
	ready, err := wgsl.Prepare(c)
	if err != nil {
		return fail(err)
	}
	p := &program{dev: d, kernel: c, ready: ready, lanes: 4, variants: map[string]*variant{}}
	for ; ; p.lanes = 1 {
		v := wgsl.Dense(ready, p.lanes)
		if _, err = wgsl.Print(ready, &v); err == nil {
			return p, nil
		}
		if p.lanes == 1 {
			return fail(err)
		}
	}
}

// variantFor finds or makes the shader for a piece. The caller holds d.mu.
func (p *program) variantFor(pc *piece) (*variant, error) {
	choice := choose(p.ready, pc, p.lanes)
	key := choice.Key()
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.variants[key]; v != nil {
		return v, nil
	}
	source, err := wgsl.Print(p.ready, &choice)
	if err == nil {
		err = fault.Hit(fault.Compile)
	}
	var pipe *gpu.Pipeline
	if err == nil {
		pipe, err = p.dev.pipeline(p, source, &choice)
	}
	if err != nil {
		return nil, p.dev.compileError(p, source, err)
	}
	v := &variant{choice, source, pipe}
	p.variants[key] = v
	return v, nil
}

// compileError wraps what the printer or the native compiler refused. Faults
// of the device pass as they are.
func (d *device) compileError(p *program, source string, err error) error {
	if e := deviceError(err); e != err {
		return e
	}
	d.stats.compileFails.Add(1)
	log := err.Error()
	var se *gpu.SourceError
	if errors.As(err, &se) {
		log = se.Log
	}
	return &runtime.CompileError{Kernel: p.kernel.String(), Source: source, Log: log, Err: err}
}

// pipeline compiles a shader, or finds one of the same text. The caller holds
// d.mu.
func (d *device) pipeline(p *program, source string, v *wgsl.Variant) (*gpu.Pipeline, error) {
	if pipe := d.pipelines[source]; pipe != nil {
		return pipe, nil
	}
	bindings := make([]gpu.Binding, len(v.Bindings)+1)
	for i, b := range v.Bindings {
		if b.Write {
			bindings[i] = gpu.ReadWrite
		}
	}
	bindings[len(v.Bindings)] = gpu.Params
	start := time.Now()
	pipe, err := d.gpu.NewPipeline(source, bindings)
	took := time.Since(start)
	if d.cfg.OnCompile != nil {
		d.cfg.OnCompile(p.kernel, took.Seconds(), err)
	}
	if err != nil {
		return nil, err
	}
	d.stats.compiles.Add(1)
	d.stats.compile.Add(int64(took))
	d.pipelines[source] = pipe
	return pipe, nil
}

// Source lists the shaders made for a program so far.
func (d *device) Source(prog runtime.Program) []runtime.Variant {
	p, ok := prog.(*program)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]runtime.Variant, 0, len(p.variants))
	for key, v := range p.variants {
		list = append(list, runtime.Variant{Tier: "wgsl", Class: key, Source: v.source})
	}
	return list
}
