package gpuchild

import (
	"errors"
	"sync/atomic"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// object is a buffer or pipeline of the other process.
type object struct {
	dev  *Device
	id   uint64
	gone atomic.Bool
}

// give releases an object. Requests that await a reply were sent before, so no later request can
// refer to the object.
func (o *object) give(how call) {
	if !o.gone.Swap(true) && o.dev.Usable() == nil {
		o.dev.send(&request{Call: how, Object: o.id})
	}
}

type buffer struct {
	object
	size int64
}

// Size is in bytes.
func (b *buffer) Size() int64 { return b.size }

// Release frees the memory after submitted work is done with it.
func (b *buffer) Release() { b.give(callReleaseBuffer) }

type pipeline struct{ object }

// Release frees the pipeline after submitted work is done with it.
func (p *pipeline) Release() { p.give(callReleasePipeline) }

// number returns an id that no other object has.
func (d *Device) number() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	return d.last
}

// NewBuffer allocates at least size bytes.
func (d *Device) NewBuffer(size int64, use gpurun.Use) (gpurun.Buffer, error) {
	id := d.number()
	a, err := d.call(&request{Call: callNewBuffer, Object: id, N: size, Use: use})
	if err != nil {
		return nil, err
	}
	return &buffer{object{dev: d, id: id}, a.Size}, nil
}

// NewPipeline compiles a shader.
func (d *Device) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	return d.newPipeline(&request{Call: callNewPipeline, Text: source, Bindings: bindings})
}

func (d *Device) newPipeline(r *request) (gpurun.Pipeline, error) {
	r.Object = d.number()
	if _, err := d.call(r); err != nil {
		return nil, err
	}
	return &pipeline{object{dev: d, id: r.Object}}, nil
}

// keeper is a Device whose driver exports binaries.
type keeper struct{ *Device }

// Binary is the driver's compiled form of a pipeline.
func (k keeper) Binary(p gpurun.Pipeline) ([]byte, error) {
	x, ok := p.(*pipeline)
	if !ok || x.dev != k.Device {
		return nil, errors.New("gpu: the pipeline belongs to another device")
	}
	a, err := k.call(&request{Call: callBinary, Object: x.id})
	if err != nil {
		return nil, err
	}
	return a.Data, nil
}

// NewPipelineOf makes a pipeline of a binary.
func (k keeper) NewPipelineOf(binary []byte, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	return k.newPipeline(&request{Call: callNewPipelineOf, Data: binary, Bindings: bindings})
}
