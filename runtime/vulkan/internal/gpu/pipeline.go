//go:build (linux || darwin || windows) && (amd64 || arm64)

package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/codegen/spirv"
	"github.com/millrace-go/millrace/runtime/internal/gpurun"
	"github.com/millrace-go/millrace/runtime/vulkan/internal/vk"
)

// Pipeline is a compiled kernel. It lives until it is released or its device is closed.
type Pipeline struct {
	dev      *Device
	handle   uint64
	layout   uint64
	set      uint64 // the layout of its bindings
	cache    uint64 // the driver's compiled form
	words    []uint32
	full     bool // its subgroups are full: it has matrices
	pushed   int  // bytes of run-time words that are push constants; 0 if a buffer has the words
	bindings []gpurun.Binding
}

// pushes reports whether a binding's words are push constants.
func (p *Pipeline) pushes(binding int) bool {
	return p.pushed > 0 && p.bindings[binding] == gpurun.Params
}

// NewPipeline compiles a text of package spirv.
func (d *Device) NewPipeline(source string, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.end()
	mod, err := spirv.Compile(source, d.adapter.floats, d.adapter.push)
	if err == nil {
		err = fits(mod, bindings, &d.adapter.info)
	}
	if err != nil {
		return nil, &gpurun.SourceError{Log: err.Error()}
	}
	done, err := dump(source, mod.Words)
	if err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", dumpTo, err)
	}
	p, r := d.newPipeline(mod.Words, mod.Pushed, bindings, nil)
	done()
	if r == vk.Success {
		return p, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	err = d.check("vkCreateComputePipelines", r)
	if r == vk.ErrorDeviceLost || r == vk.ErrorOutOfDeviceMemory || r == vk.ErrorOutOfHostMemory {
		return nil, err
	}
	return nil, &gpurun.SourceError{Log: err.Error()}
}

// fits checks a module against an adapter and bindings. A driver would not: it may crash.
func fits(m *spirv.Module, bindings []gpurun.Binding, info *gpurun.Info) error {
	l := &info.Limits
	switch {
	case m.Store16 && !info.Store16:
		return errors.New("elements of 16 bits, which the adapter's shaders cannot access")
	case m.Store8 && !info.Store8:
		return errors.New("elements of 8 bits, which the adapter's shaders cannot access")
	case m.Group > l.GroupSize:
		return fmt.Errorf("a workgroup of %d invocations, the limit is %d", m.Group, l.GroupSize)
	case int64(m.Shared) > l.WorkgroupStorage:
		return fmt.Errorf("%d bytes of workgroup memory, the limit is %d", m.Shared, l.WorkgroupStorage)
	case len(bindings) > maxBindings:
		return fmt.Errorf("%d bindings, the limit is %d", len(bindings), maxBindings)
	}
	if m.Matrices != (spirv.Matrices{}) && !slices.ContainsFunc(info.Matrices, func(x shader.Matrix) bool { return m.Group%x.Lanes == 0 && m.Matrices == matrices(x) }) {
		return fmt.Errorf("matrices %+v in a workgroup of %d invocations, which the adapter does not have", m.Matrices, m.Group)
	}
	for i, k := range m.Bindings {
		if i >= len(bindings) || (k == spirv.Words) != (bindings[i] == gpurun.Params) {
			return fmt.Errorf("binding %d is not among the pipeline's", i)
		}
	}
	return nil
}

func descriptorType(b gpurun.Binding) uint32 {
	if b == gpurun.Params {
		return vk.DescriptorTypeUniformBuffer
	}
	return vk.DescriptorTypeStorageBuffer
}

// newPipeline makes a pipeline of a module and its number of pushed bytes, with the driver's compiled form of an earlier process if
// there is one. It must be called between begin and end.
func (d *Device) newPipeline(words []uint32, pushed int, bindings []gpurun.Binding, compiled []byte) (*Pipeline, vk.Result) {
	p := &Pipeline{dev: d, words: words, pushed: pushed, full: spirv.HasMatrices(words), bindings: append([]gpurun.Binding(nil), bindings...)}
	if r := p.create(compiled); r != vk.Success {
		p.destroy()
		return nil, r
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pipelines != nil { // not destroyed meanwhile
		d.pipelines[p] = struct{}{}
	}
	return p, vk.Success
}

func (p *Pipeline) create(compiled []byte) vk.Result {
	d := p.dev
	list := make([]vk.DescriptorSetLayoutBinding, 0, len(p.bindings)+1)
	for i, b := range p.bindings {
		if !p.pushes(i) {
			list = append(list, vk.DescriptorSetLayoutBinding{Binding: uint32(i), DescriptorType: descriptorType(b), DescriptorCount: 1, StageFlags: vk.ShaderStageComputeBit})
		}
	}
	set := vk.DescriptorSetLayoutCreateInfo{
		SType: vk.StructureTypeDescriptorSetLayoutCreateInfo, Flags: vk.DescriptorSetLayoutCreatePushDescriptorBitKhr,
		BindingCount: uint32(len(list)), PBindings: unsafe.Pointer(&list[:1][0]),
	}
	if r := vk.Call(d.CreateDescriptorSetLayout, d.Handle, uintptr(unsafe.Pointer(&set)), 0, uintptr(unsafe.Pointer(&p.set))); r != vk.Success {
		return r
	}
	layout := vk.PipelineLayoutCreateInfo{SType: vk.StructureTypePipelineLayoutCreateInfo, SetLayoutCount: 1, PSetLayouts: unsafe.Pointer(&p.set)}
	words := vk.PushConstantRange{StageFlags: vk.ShaderStageComputeBit, Size: uint32(p.pushed)}
	if p.pushed > 0 {
		layout.PushConstantRangeCount, layout.PPushConstantRanges = 1, unsafe.Pointer(&words)
	}
	if r := vk.Call(d.CreatePipelineLayout, d.Handle, uintptr(unsafe.Pointer(&layout)), 0, uintptr(unsafe.Pointer(&p.layout))); r != vk.Success {
		return r
	}
	cache := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
	if len(compiled) > 0 {
		cache.InitialDataSize, cache.PInitialData = uintptr(len(compiled)), unsafe.Pointer(&compiled[0])
	}
	if r := vk.Call(d.CreatePipelineCache, d.Handle, uintptr(unsafe.Pointer(&cache)), 0, uintptr(unsafe.Pointer(&p.cache))); r != vk.Success {
		return r
	}
	shader := vk.ShaderModuleCreateInfo{SType: vk.StructureTypeShaderModuleCreateInfo, CodeSize: uintptr(len(p.words) * 4), PCode: unsafe.Pointer(&p.words[0])}
	var module uint64
	if r := vk.Call(d.CreateShaderModule, d.Handle, uintptr(unsafe.Pointer(&shader)), 0, uintptr(unsafe.Pointer(&module))); r != vk.Success {
		return r
	}
	defer vk.Call(d.DestroyShaderModule, d.Handle, uintptr(module), 0)
	info := vk.ComputePipelineCreateInfo{
		SType: vk.StructureTypeComputePipelineCreateInfo, Layout: p.layout, BasePipelineIndex: -1,
		Stage: vk.PipelineShaderStageCreateInfo{SType: vk.StructureTypePipelineShaderStageCreateInfo, Stage: vk.ShaderStageComputeBit, Module: module, PName: vk.Text("main")},
	}
	if p.full {
		info.Stage.Flags = vk.PipelineShaderStageCreateRequireFullSubgroupsBit
	}
	return vk.Call(d.CreateComputePipelines, d.Handle, uintptr(p.cache), 1, uintptr(unsafe.Pointer(&info)), 0, uintptr(unsafe.Pointer(&p.handle)))
}

func (p *Pipeline) destroy() {
	d := p.dev
	vk.Call(d.DestroyPipeline, d.Handle, uintptr(p.handle), 0)
	vk.Call(d.DestroyPipelineCache, d.Handle, uintptr(p.cache), 0)
	vk.Call(d.DestroyPipelineLayout, d.Handle, uintptr(p.layout), 0)
	vk.Call(d.DestroyDescriptorSetLayout, d.Handle, uintptr(p.set), 0)
}

// Release frees the kernel's memory after submitted work is done with it. Calling it again does
// nothing.
func (p *Pipeline) Release() {
	d := p.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.pipelines[p]; ok && d.usable() == nil {
		delete(d.pipelines, p)
		d.bury(0, p.destroy)
	}
}

// Binary returns the number of the module's words, the number of pushed bytes, the words, and the data
// of the driver's cache, which has at least a header.
func (d *Device) Binary(pipe gpurun.Pipeline) ([]byte, error) {
	p, ok := pipe.(*Pipeline)
	if !ok || p.dev != d {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if _, ok := d.pipelines[p]; !ok {
		return nil, nil
	}
	var n uint64
	if err := d.check("vkGetPipelineCacheData", vk.Call(d.GetPipelineCacheData, d.Handle, uintptr(p.cache), uintptr(unsafe.Pointer(&n)), 0)); err != nil || n == 0 {
		return nil, err
	}
	cache := make([]byte, n)
	if err := d.check("vkGetPipelineCacheData", vk.Call(d.GetPipelineCacheData, d.Handle, uintptr(p.cache), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&cache[0])))); err != nil {
		return nil, err
	}
	data := binary.LittleEndian.AppendUint32(nil, uint32(len(p.words)))
	data = binary.LittleEndian.AppendUint32(data, uint32(p.pushed))
	for _, w := range p.words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	// Mesa 26's lavapipe writes the header, and says that it has written less.
	if bytes.HasPrefix(cache, d.adapter.cache) {
		n = max(n, uint64(len(d.adapter.cache)))
	}
	return append(data, cache[:n]...), nil
}

// NewPipelineOf makes a pipeline of Binary's result.
func (d *Device) NewPipelineOf(data []byte, bindings []gpurun.Binding) (gpurun.Pipeline, error) {
	if err := d.begin(); err != nil {
		return nil, err
	}
	defer d.end()
	refuse := func(why string) (gpurun.Pipeline, error) {
		return nil, fmt.Errorf("gpu: %w: %s", gpurun.ErrBinary, why)
	}
	if len(data) < 12 {
		return refuse("it is too short")
	}
	n, pushed := int64(binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint32(data[4:])
	if pushed > maxPush || pushed%16 != 0 || pushed > 0 && !slices.Contains(bindings, gpurun.Params) {
		return refuse("its run-time words are not the pipeline's")
	}
	if data = data[8:]; n == 0 || n*4 > int64(len(data)) {
		return refuse("it has no module")
	}
	words := make([]uint32, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(data[i*4:])
	}
	compiled := data[n*4:]
	if !bytes.HasPrefix(compiled, d.adapter.cache) {
		return refuse("another driver made it")
	}
	done, err := dump("", words)
	if err != nil {
		return nil, fmt.Errorf("gpu: %s: %w", dumpTo, err)
	}
	p, r := d.newPipeline(words, int(pushed), bindings, compiled)
	done()
	if r != vk.Success {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err := d.check("vkCreateComputePipelines", r); d.lost != nil {
			return nil, err
		}
		return refuse(r.Error())
	}
	return p, nil
}
