// Package gpurun runs kernels on a GPU: which shader a launch is run by, how it
// is cut into dispatches, pools of memory, faults of indices, shaders that are
// kept and given back, and tuning. What it runs them on is a [Device], which an
// API of GPUs implements in a few calls; in what language, a dialect of package
// codegen/shader says. [Runner] is both as a device of the engine.
//
// Engine part: no compatibility promise; use package millrace.
package gpurun

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/runtime"
)

// Device is an open GPU with one queue. All methods are safe for concurrent use.
// Its errors wrap ErrLost, ErrMemory and ErrClosed where those are to blame; once
// lost or closed every call gives that error.
type Device interface {
	Info() Info
	// NewBuffer allocates at least size bytes, rounded up to 16.
	NewBuffer(size int64, use Use) (Buffer, error)
	// NewPipeline compiles a shader whose entry point is "main", with these bindings
	// in order. The error is a *SourceError where the text is to blame.
	NewPipeline(source string, bindings []Binding) (Pipeline, error)
	// Write fills n bytes of b at off (both multiples of 4), in order with what is
	// submitted. fill is called with parts of them in ascending order and the
	// position of each.
	Write(b Buffer, off, n int64, fill func(dst []byte, at int64)) error
	// Read passes n bytes of b at off (both multiples of 4) to drain, likewise, once
	// the work submitted before is done.
	Read(b Buffer, off, n int64, drain func(src []byte, at int64)) error
	// Submit runs dispatches in order; each sees what the earlier ones wrote. Before
	// them it writes words, where there are any, to the start of params. It returns
	// once the work is queued.
	Submit(list []Dispatch, params Buffer, words []byte) error
	// Backlog is the number of submissions since the queue was last seen empty.
	Backlog() int
	// Wait blocks until all submitted work is done.
	Wait() error
	// Usable is the error that every call would give, or nil.
	Usable() error
	// Lose makes the device behave as if it had vanished.
	Lose(why error)
	// Close waits for submitted work and releases all that was made on the device.
	Close() error
}

// Use is what a buffer is for.
type Use uint8

const (
	Storage Use = iota // shaders read and write it; copied to and from
	Uniform            // run-time words, written by the host
	Private            // the first of uses that a Device has for itself
)

// Buffer is memory of a Device.
type Buffer interface {
	Size() int64 // in bytes
	// Release gives the memory back once submitted work is done with it.
	Release()
}

// Binding is the kind of one binding of a pipeline.
type Binding uint8

const (
	ReadOnly Binding = iota
	ReadWrite
	Params // run-time words
)

// Pipeline is a compiled shader.
type Pipeline interface {
	// Release gives it back once submitted work is done with it.
	Release()
}

// Range is part of a buffer, in bytes.
type Range struct {
	Buf  Buffer
	Off  int64
	Size int64
}

// Dispatch is one run of a pipeline: a bound range per binding and the number
// of workgroups.
type Dispatch struct {
	Pipe   Pipeline
	Bind   []Range
	Groups [3]uint32
}

// Check finds what limits forbid, or bindings that are not a pipeline's. Which buffers
// are bound is for the device to look at.
func (x *Dispatch) Check(bindings []Binding, l *Limits) error {
	if len(x.Bind) != len(bindings) {
		return fmt.Errorf("gpu: %d ranges for %d bindings", len(x.Bind), len(bindings))
	}
	for _, g := range x.Groups {
		if int64(g) > l.Groups {
			return fmt.Errorf("gpu: %d workgroups are above the limit of %d", g, l.Groups)
		}
	}
	for i, r := range x.Bind {
		limit := l.Binding
		if bindings[i] == Params {
			limit = l.Uniform
		}
		if r.Size > limit || r.Off%l.Align != 0 {
			return fmt.Errorf("binding %d: gpu: %d bytes at %d: the limit is %d bytes at multiples of %d", i, r.Size, r.Off, limit, l.Align)
		}
	}
	return nil
}

// Limits are what a device allows. Sizes are in bytes.
type Limits struct {
	Binding          int64 // one storage binding
	Buffer           int64 // one buffer
	Uniform          int64 // one binding of run-time words
	Align            int64 // of binding offsets
	StorageBuffers   int   // per pipeline
	Groups           int64 // workgroups per dispatch dimension
	GroupSize        int   // invocations per workgroup
	WorkgroupStorage int64
	Subgroup         int // invocations of a subgroup, where shaders can add and compare over them; else 0
}

// Info describes a device.
type Info struct {
	Name   string
	Driver string
	Kind   string // DiscreteGPU, IntegratedGPU, CPU, Unknown
	Vendor uint32
	Model  uint32
	Limits Limits
	Points int64 // of one dispatch at most, where shaders could count more
}

// Faults of a Device, as far as a Runner tells them apart.
var (
	ErrLost   = errors.New("GPU device lost")
	ErrMemory = errors.New("out of GPU memory")
	ErrClosed = errors.New("GPU device closed")
)

// SourceError is a text that the API's compiler refused; Log quotes the line.
type SourceError struct{ Log string }

func (e *SourceError) Error() string { return "gpu: " + e.Log }

// api is the name of an API, which errors begin with.
type api string

func (a api) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", string(a), fmt.Errorf(format, args...))
}

// deviceError turns faults of a Device into those of package runtime.
func (a api) deviceError(err error) error {
	for _, m := range [...]struct{ from, to error }{
		{ErrLost, runtime.ErrDeviceLost},
		{ErrMemory, runtime.ErrOutOfMemory},
		{ErrClosed, runtime.ErrClosed},
	} {
		if errors.Is(err, m.from) {
			return a.errorf("%w: %w", m.to, err)
		}
	}
	return err
}
