package gpurun

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/runtime"
)

// Device is an open GPU with one queue. All methods are safe for concurrent use. Its errors wrap
// ErrLost, ErrMemory and ErrClosed where these are the cause. After it is lost or closed every call
// returns that error.
type Device interface {
	Info() Info
	// NewBuffer allocates at least size bytes, rounded up to 16.
	NewBuffer(size int64, use Use) (Buffer, error)
	// NewPipeline compiles a shader with the entry point "main" and these bindings in order. The
	// error is a *SourceError if the text is invalid.
	NewPipeline(source string, bindings []Binding) (Pipeline, error)
	// Write fills n bytes of b at off (both multiples of 4 unless Info has Store16 or Store8), in
	// order with submitted work. It calls fill for parts, with the position of each, a multiple of 4,
	// perhaps for several at the same time.
	Write(b Buffer, off, n int64, fill func(dst []byte, at int64)) error
	// Read passes n bytes of b at off to drain in the same way, after the work submitted before is
	// done.
	Read(b Buffer, off, n int64, drain func(src []byte, at int64)) error
	// Submit runs dispatches in order; each sees the writes of the earlier ones. First it writes
	// words, if any, to the start of params. It returns when the work is queued.
	Submit(list []Dispatch, params Buffer, words []byte) error
	// Backlog is the number of submissions since the queue was last seen empty.
	Backlog() int
	// Wait blocks until all submitted work is done. Writes that no such work uses may go on.
	Wait() error
	// Usable returns the error that every call would return, or nil.
	Usable() error
	// Lose makes the device behave as if it had vanished.
	Lose(why error)
	// Close waits for submitted work and releases everything made on the device.
	Close() error
}

// Recorder is a Device that can keep dispatches as one piece of work, to submit them many times.
type Recorder interface {
	// Record keeps a list of dispatches with the run-time words that their buffers have now. The list
	// and its slices may be changed afterwards. Each submission fills the range zero with zeros first,
	// unless it has no buffer.
	Record(zero Range, list []Dispatch) (Recording, error)
	// Play submits work as Submit does: each dispatch sees the writes of all earlier ones. It returns
	// ErrStale, and submits nothing, if something that a Recording uses was released since.
	Play(list []Work) error
}

// Recording is recorded work. Its methods are called one at a time, and with the Device's.
type Recording interface {
	// Release frees the recording after submitted work is done with it.
	Release()
}

// Work is a Recording, or dispatches that are submitted once, with a range that is filled with zeros
// before them.
type Work struct {
	Rec  Recording
	Zero Range
	List []Dispatch
}

// Use is the purpose of a buffer.
type Use uint8

const (
	Storage Use = iota // read and written by shaders; copied to and from
	Uniform            // run-time words, written by the host
	Report             // few words that shaders write and the host reads after each submission
	Private            // the first use that a Device may define for itself
)

// Buffer is memory of a Device.
type Buffer interface {
	Size() int64 // in bytes
	// Release frees the memory after submitted work is done with it.
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
	// Release frees the pipeline after submitted work is done with it.
	Release()
}

// Range is part of a buffer, in bytes.
type Range struct {
	Buf  Buffer
	Off  int64
	Size int64
}

// Dispatch is one run of a pipeline: a range for each binding, and the number of workgroups.
type Dispatch struct {
	Pipe   Pipeline
	Bind   []Range
	Groups [3]uint32

	// With Info.Skips, Unless may be two words of a Report. The dispatch does nothing if the second word
	// is not 0. With Look, the first word is copied to the second before.
	Unless Range
	Look   bool
}

// Check reports violated limits, and bindings that do not match the pipeline's. The device checks
// the buffers.
func (x *Dispatch) Check(bindings []Binding, l *Limits) error {
	if len(x.Bind) != len(bindings) {
		return fmt.Errorf("gpu: a dispatch has %d ranges, the pipeline %d bindings", len(x.Bind), len(bindings))
	}
	for _, g := range x.Groups {
		if int64(g) > l.Groups {
			return fmt.Errorf("gpu: a dispatch has %d workgroups, the limit is %d", g, l.Groups)
		}
	}
	for i, r := range x.Bind {
		limit := l.Binding
		if bindings[i] == Params {
			limit = l.Uniform
		}
		if r.Size > limit || r.Off%l.Align != 0 {
			return fmt.Errorf("binding %d: gpu: it has %d bytes at offset %d, allowed are %d bytes at multiples of %d", i, r.Size, r.Off, limit, l.Align)
		}
	}
	return nil
}

// Limits are a device's limits. Sizes are in bytes.
type Limits struct {
	Binding          int64 // one storage binding
	Buffer           int64 // one buffer
	Uniform          int64 // one binding of run-time words
	Align            int64 // of binding offsets
	StorageBuffers   int   // per pipeline
	Groups           int64 // workgroups per dispatch dimension
	GroupSize        int   // invocations per workgroup
	WorkgroupStorage int64
	Subgroup         int  // invocations of a subgroup, if shaders can add and compare over them; else 0
	Shuffles         bool // invocations of a subgroup can read each other's values
	Clusters         bool // shaders can add and compare over parts of a subgroup
}

// Info describes a device.
type Info struct {
	Name   string
	Driver string
	Kind   string // DiscreteGPU, IntegratedGPU, CPU, Unknown
	Vendor uint32
	Model  uint32
	Limits Limits
	Points int64 // most points of one dispatch, if below the limit of shaders

	// Shaders can read and write elements of 16 and of 8 bits. Write and Read then take any offsets
	// and numbers of bytes.
	Store16, Store8 bool

	Skips bool // Dispatch.Unless works

	Matrices []shader.Matrix // that shaders can multiply, with sums of float32
	Emulated bool            // Matrices have no hardware: they are for tests
}

// Faults of a Device that a Runner distinguishes.
var (
	ErrLost   = errors.New("GPU device lost")
	ErrMemory = errors.New("out of GPU memory")
	ErrClosed = errors.New("GPU device closed")
	ErrStale  = errors.New("recorded work uses what was released")
)

// SourceError is a text that the API's compiler rejected; Log quotes the line.
type SourceError struct{ Log string }

func (e *SourceError) Error() string { return "gpu: " + e.Log }

// api is the name of an API, the prefix of errors.
type api string

func (a api) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", string(a), fmt.Errorf(format, args...))
}

// deviceError converts faults of a Device to those of package runtime.
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
