package gpuchild

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

// object is a buffer, a pipeline or a recording of the other process.
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
