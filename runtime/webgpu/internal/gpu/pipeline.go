//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package gpu

import (
	"fmt"

	"github.com/rajveermalviya/go-webgpu/wgpu"

	"github.com/millrace-go/millrace/runtime/internal/gpurun"
)

var bindingTypes = [...]wgpu.BufferBindingType{
	gpurun.ReadOnly:  wgpu.BufferBindingType_ReadOnlyStorage,
	gpurun.ReadWrite: wgpu.BufferBindingType_Storage,
	gpurun.Params:    wgpu.BufferBindingType_Uniform,
}

// Pipeline is a compiled kernel. It lives until it is released or its device is closed.
type Pipeline struct {
	dev      *Device
	ref      *wgpu.ComputePipeline
	layout   *wgpu.BindGroupLayout
	bindings []gpurun.Binding
}

// NewPipeline compiles WGSL with the entry point "main" and the bindings in group 0, in order.
func (d *Device) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	entries := make([]wgpu.BindGroupLayoutEntry, len(bindings))
	for i, b := range bindings {
		entries[i] = wgpu.BindGroupLayoutEntry{
			Binding:    uint32(i),
			Visibility: wgpu.ShaderStage_Compute,
			Buffer:     wgpu.BufferBindingLayout{Type: bindingTypes[b]},
		}
	}
	mod, err := d.dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
		WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: source},
	})
	if err = d.check(err); err != nil {
		return nil, sourceError(err)
	}
	defer mod.Release()
	layout, err := d.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Entries: entries})
	if err = d.check(err); err != nil {
		return nil, fmt.Errorf("gpu: bind group layout: %w", err)
	}
	pl, err := d.dev.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{BindGroupLayouts: []*wgpu.BindGroupLayout{layout}})
	if err = d.check(err); err != nil {
		layout.Release()
		return nil, fmt.Errorf("gpu: pipeline layout: %w", err)
	}
	defer pl.Release()
	ref, err := d.dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Layout:  pl,
		Compute: wgpu.ProgrammableStageDescriptor{Module: mod, EntryPoint: "main"},
	})
	if err = d.check(err); err != nil {
		layout.Release()
		return nil, sourceError(err)
	}
	p := &Pipeline{dev: d, ref: ref, layout: layout, bindings: append([]gpurun.Binding(nil), bindings...)}
	d.pipelines[p] = struct{}{}
	return p, nil
}

// Release frees the kernel's memory after submitted work is done with it. Calling it again does
// nothing.
func (p *Pipeline) Release() {
	d := p.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.pipelines[p]; ok && d.usable() == nil {
		delete(d.pipelines, p)
		p.release()
	}
}

func (p *Pipeline) release() {
	p.ref.Release()
	p.layout.Release()
}

// sourceError separates faults of the device from errors in the text.
func sourceError(err error) error {
	if isDeviceFault(err) {
		return err
	}
	return &gpurun.SourceError{Log: err.Error()}
}
