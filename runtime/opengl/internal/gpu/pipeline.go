//go:build cgo && linux && !android

package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-gl/gl/v4.3-core/gl"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// Pipeline is a linked program. gone is guarded by the device's lock.
type Pipeline struct {
	dev      *Device
	name     uint32
	bindings []gpurun.Binding
	gone     bool
}

// NewPipeline compiles GLSL.
func (d *Device) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	return d.newPipeline(bindings, func(program uint32) error {
		shader := gl.CreateShader(gl.COMPUTE_SHADER)
		defer gl.DeleteShader(shader)
		text, free := gl.Strs(source)
		defer free()
		n := int32(len(source))
		gl.ShaderSource(shader, 1, text, &n)
		gl.CompileShader(shader)
		if log, ok := outcome(shader, gl.COMPILE_STATUS, gl.GetShaderiv, gl.GetShaderInfoLog); !ok {
			return &gpurun.SourceError{Log: log}
		}
		gl.AttachShader(program, shader)
		gl.LinkProgram(program)
		gl.DetachShader(program, shader)
		if log, ok := outcome(program, gl.LINK_STATUS, gl.GetProgramiv, gl.GetProgramInfoLog); !ok {
			return &gpurun.SourceError{Log: log}
		}
		return nil
	})
}

// newPipeline makes a program that link completes.
func (d *Device) newPipeline(bindings []gpurun.Binding, link func(program uint32) error) (*Pipeline, error) {
	if err := d.Usable(); err != nil {
		return nil, err
	}
	p := &Pipeline{dev: d, bindings: slices.Clone(bindings)}
	err := d.do(func() error {
		p.name = gl.CreateProgram()
		err := link(p.name)
		if e := d.reported(); e != nil && (err == nil || d.lostError() != nil) {
			err = fmt.Errorf("gpu: compiling: %w", e)
		}
		if err != nil {
			gl.DeleteProgram(p.name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pipelines != nil { // not closed meanwhile
		d.pipelines[p] = struct{}{}
	}
	return p, nil
}

// outcome is whether a shader or program is fit for use, and the driver's log where
// it is not.
func outcome(name, status uint32, get func(uint32, uint32, *int32), text func(uint32, int32, *int32, *uint8)) (log string, ok bool) {
	var good, n int32
	if get(name, status, &good); good != 0 {
		return "", true
	}
	get(name, gl.INFO_LOG_LENGTH, &n)
	log = "the driver refuses it without a reason"
	if n > 1 {
		b := make([]byte, n)
		text(name, n, &n, &b[0])
		log = strings.TrimSpace(string(b[:n]))
	}
	return log, false
}

// Release gives the program back once submitted work is done with it. Calling it
// again does nothing.
func (p *Pipeline) Release() {
	d := p.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.gone || d.usable() != nil {
		return
	}
	p.gone = true
	delete(d.pipelines, p)
	d.thread.post(func() { gl.DeleteProgram(p.name) })
}
