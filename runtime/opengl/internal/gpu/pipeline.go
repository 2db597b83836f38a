//go:build cgo && linux && !android && !noopengl

package gpu

import (
	"encoding/binary"
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
func (d *Device) newPipeline(bindings []gpurun.Binding, link func(program uint32) error) (gpurun.Pipeline, error) {
	if err := d.Usable(); err != nil {
		return nil, err
	}
	p := &Pipeline{dev: d, bindings: slices.Clone(bindings)}
	err := d.do(func() error {
		p.name = gl.CreateProgram()
		gl.ProgramParameteri(p.name, gl.PROGRAM_BINARY_RETRIEVABLE_HINT, gl.TRUE)
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

// outcome reports whether a shader or program is valid, with the driver's log if it is not.
func outcome(name, status uint32, get func(uint32, uint32, *int32), text func(uint32, int32, *int32, *uint8)) (log string, ok bool) {
	var good, n int32
	if get(name, status, &good); good != 0 {
		return "", true
	}
	get(name, gl.INFO_LOG_LENGTH, &n)
	log = "the driver rejects it without a reason"
	if n > 1 {
		b := make([]byte, n)
		text(name, n, &n, &b[0])
		log = strings.TrimSpace(string(b[:n]))
	}
	return log, false
}

// Release frees the program after submitted work is done with it. Calling it again does nothing.
func (p *Pipeline) Release() {
	d := p.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.gone || d.usable() != nil {
		return
	}
	p.gone = true
	delete(d.pipelines, p)
	d.thread.Post(func() { gl.DeleteProgram(p.name) })
}

// Binary is the driver's compiled form of a pipeline, after the number of its format.
func (d *Device) Binary(p gpurun.Pipeline) ([]byte, error) {
	x, ok := p.(*Pipeline)
	if !ok || x.dev != d || d.formats == 0 {
		return nil, nil
	}
	var data []byte
	err := d.do(func() error {
		d.mu.Lock()
		gone := x.gone
		d.mu.Unlock()
		var n int32
		if !gone {
			gl.GetProgramiv(x.name, gl.PROGRAM_BINARY_LENGTH, &n)
		}
		if n <= 0 {
			return nil
		}
		var format uint32
		data = make([]byte, formatSize+n)
		gl.GetProgramBinary(x.name, n, &n, &format, gl.Ptr(data[formatSize:]))
		binary.LittleEndian.PutUint32(data, format)
		data = data[:formatSize+n]
		return nil
	})
	return data, err
}

// formatSize is the number of bytes before the driver's.
const formatSize = 4

// NewPipelineOf makes a pipeline of Binary's result.
func (d *Device) NewPipelineOf(data []byte, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	if len(data) <= formatSize || d.formats == 0 {
		return nil, fmt.Errorf("gpu: %w: it has %d bytes", gpurun.ErrBinary, len(data))
	}
	return d.newPipeline(bindings, func(program uint32) error {
		gl.ProgramBinary(program, binary.LittleEndian.Uint32(data), gl.Ptr(data[formatSize:]), int32(len(data)-formatSize))
		refused := d.reported() // an unknown number of a format
		if log, ok := outcome(program, gl.LINK_STATUS, gl.GetProgramiv, gl.GetProgramInfoLog); !ok || refused != nil {
			return fmt.Errorf("gpu: %w: %s", gpurun.ErrBinary, log)
		}
		return nil
	})
}
