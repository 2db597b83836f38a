package memory

import (
	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/runtime"
)

// Sketch is a pool without memory: it tells which results may lie in one place. Whoever
// has bound a plan to it knows how much memory the plan needs, and what becomes what.
type Sketch struct {
	Pool
	base device.Base
	free map[int64][]runtime.Buffer // by size
	marks
}

// marks is the driver of a sketch.
type marks struct {
	runtime.Device
	of *Sketch
}

// Mark stands for a buffer.
type Mark struct {
	bytes int64
	Input bool // stands for one from outside
}

// Bytes is the usable size.
func (m *Mark) Bytes() int64 { return m.bytes }

// NewSketch makes one for a device.
func NewSketch(d *device.Base) *Sketch {
	k := &Sketch{free: map[int64][]runtime.Buffer{}}
	k.marks = marks{d.Driver, k}
	k.base.Opts, k.base.Caps, k.base.Driver = d.Opts, d.Caps, &k.marks
	k.Init(&k.base, func() bool { return false }, func() {})
	k.threshold.Store(1 << 62) // nothing is collected for what takes no memory
	k.swept.Store(true)        // nor listened for
	return k
}

// Device is the sketch's own, whose counters tell what was done.
func (k *Sketch) Device() *device.Base { return &k.base }

// Alloc gives a mark: one that was given back, if there is one of that size.
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
	return &Storage{b, view}
}
