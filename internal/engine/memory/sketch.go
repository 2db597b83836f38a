package memory

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/runtime"
)

// Sketch is a pool without memory. Binding a plan to a Sketch tells how much memory the plan needs
// and which results can share a buffer.
type Sketch struct {
	Pool
	base device.Base
	free map[int64][]runtime.Buffer // free marks by size
	marks
}

// marks is the driver of a Sketch.
type marks struct {
	runtime.Device
	of *Sketch
}

// Mark stands for a buffer.
type Mark struct {
	bytes int64
	Input bool // stands for a buffer from outside
}

// Bytes is the usable size.
func (m *Mark) Bytes() int64 { return m.bytes }

// NewSketch makes a Sketch for a device.
func NewSketch(d *device.Base) *Sketch {
	k := &Sketch{free: map[int64][]runtime.Buffer{}}
	k.marks = marks{d.Driver, k}
	k.base.Opts, k.base.Caps, k.base.Driver = d.Opts, d.Caps, &k.marks
	k.Init(&k.base, func() bool { return false }, func() {})
	k.threshold.Store(1 << 62) // marks take no memory: never collect
	k.swept.Store(true)        // and never listen for collections
	return k
}

// Device is the Sketch's own device, whose counters tell what a plan did.
func (k *Sketch) Device() *device.Base { return &k.base }

// Alloc returns a freed mark of that size, or a new one.
func (m *marks) Alloc(bytes int64) (runtime.Buffer, error) {
	list := m.of.free[bytes]
	if n := len(list); n > 0 {
		m.of.free[bytes] = list[:n-1]
		return list[n-1], nil
	}
	return &Mark{bytes: bytes}, nil
}

// Free takes a mark back.
func (m *marks) Free(b runtime.Buffer) {
	if x := b.(*Mark); !x.Input {
		m.of.free[x.bytes] = append(m.of.free[x.bytes], b)
	}
}

// Input stands for memory from outside, with one reader.
func (k *Sketch) Input(view *fusion.View) *Storage {
	b := &Block{Mem: &k.Pool, Buf: &Mark{Input: true}}
	b.Dense.Block = b
	b.Refs.Store(1)
	b.uses.Store(1)
	return &Storage{Block: b, View: view}
}
