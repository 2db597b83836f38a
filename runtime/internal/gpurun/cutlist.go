package gpurun

import (
	"slices"

	"github.com/millrace-go/millrace/runtime"
)

// cutList is a list of launches as dispatches. It does not depend on the buffers of the launches, but
// on their sizes and on which operands share one.
type cutList struct {
	at      []place        // the buffers in the dispatches, those of scratch memory last
	same    []int          // by operand: the first one with the same buffer
	first   map[Buffer]int // the first operand with a buffer
	parts   []part
	uses    []*compiled
	scratch []*buffer
	given   bool // the scratch memory was given back
	work    work
}

// part is the dispatches of one submission. A launch that would overwrite what a failing launch reads
// begins another one.
type part struct {
	dispatches     []Dispatch
	begins         []int   // by launch: its first dispatch
	from           [][]int // by dispatch and binding: the operand whose buffer it binds; -1 for other memory
	params, faults Buffer
	slots          []faultSlot
}

// places appends the memory of all operands. It returns false if a buffer was freed, or is of another
// device.
func (m *memory) places(dst []place, list []runtime.Launch) ([]place, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list {
		for _, a := range list[i].Args {
			if a.Buf == nil { // an index
				dst = append(dst, place{})
				continue
			}
			b, ok := a.Buf.(*buffer)
			if !ok || b.owner != m || b.freed {
				return dst, false
			}
			dst = append(dst, place{b.mem, b.bytes})
		}
	}
	return dst, true
}

// newCut cuts a list into dispatches, which its buffers, at, are put into. It returns nil if something
// fails.
func (d *Runner) newCut(list []runtime.Launch, at []place) *cutList {
	c := &cutList{at: slices.Clone(at), first: map[Buffer]int{}}
	for i, p := range at {
		c.same = append(c.same, c.firstOf(p.mem, i))
	}
	b := d.newBatch()
	b.keep = func() error { return c.add(b) }
	err := b.takeAll(list)
	c.uses, c.scratch, c.work = b.uses, b.scratch, b.work
	b.uses, b.scratch = nil, nil
	b.release()
	if err != nil || len(c.parts) == 0 {
		c.drop(d)
		return nil
	}
	return c
}

// add makes a part of the dispatches of a batch.
func (c *cutList) add(b *batch) (err error) {
	d, data := b.dev, b.data()
	c.parts = append(c.parts, part{dispatches: slices.Clone(b.dispatches), begins: slices.Clone(b.begins), slots: b.slots})
	x := &c.parts[len(c.parts)-1]
	if x.params, err = d.memory.makeWords(int64(len(data)), Uniform); err != nil {
		return err
	}
	err = d.memory.again(func() error {
		return d.gpu.Write(x.params, 0, int64(len(data)), func(dst []byte, at int64) { copy(dst, data[at:]) })
	})
	if err != nil {
		return err
	}
	if len(x.slots) > 0 {
		if x.faults, err = d.memory.makeWords(x.zero().Size, Report); err != nil {
			return err
		}
	}
	bind(x.dispatches, x.params, x.zero())
	for _, s := range b.scratch[len(c.at)-len(c.same):] {
		c.first[s.mem] = len(c.at)
		c.at = append(c.at, place{s.mem, s.bytes})
	}
	for i := range x.dispatches {
		from := make([]int, len(x.dispatches[i].Bind))
		for j, r := range x.dispatches[i].Bind {
			from[j] = -1
			if i, ok := c.first[r.Buf]; ok {
				from[j] = i
			}
		}
		x.from = append(x.from, from)
	}
	return nil
}

// zero is the fault words, which are cleared before the dispatches run.
func (x *part) zero() Range { return Range{Buf: x.faults, Size: faultBytes(x.slots)} }

// count is the number of dispatches.
func (c *cutList) count() (n int) {
	for i := range c.parts {
		n += len(c.parts[i].dispatches)
	}
	return n
}

// giveBack frees the scratch memory until borrow is called.
func (c *cutList) giveBack(d *Runner) {
	for _, s := range c.scratch {
		d.memory.free(s)
	}
	c.given = true
}

// borrow allocates the scratch memory if it was given back. It returns false if memory lacks.
func (c *cutList) borrow(d *Runner) bool {
	if !c.given {
		return true
	}
	for i, s := range c.scratch {
		b, err := d.memory.alloc(s.bytes)
		if err != nil {
			c.giveBack(d)
			return false
		}
		c.scratch[i] = b
	}
	c.given = false
	return true
}

// fits reports whether other buffers of operands can be put into the dispatches.
func (c *cutList) fits(at []place) bool {
	if slices.Equal(c.at[:len(at)], at) {
		return true
	}
	clear(c.first)
	for i, p := range at {
		if c.firstOf(p.mem, i) != c.same[i] || p.bytes != c.at[i].bytes {
			return false
		}
	}
	return true
}

// firstOf is the first operand with the memory of operand i.
func (c *cutList) firstOf(mem Buffer, i int) int {
	if first, ok := c.first[mem]; ok {
		return first
	}
	c.first[mem] = i
	return i
}

// put puts buffers that fit into the dispatches.
func (c *cutList) put(at []place) {
	if slices.Equal(c.at, at) {
		return
	}
	copy(c.at, at)
	for _, x := range c.parts {
		for i, from := range x.from {
			for j, operand := range from {
				if operand >= 0 {
					x.dispatches[i].Bind[j].Buf = at[operand].mem
				}
			}
		}
	}
}

// whole is the part as dispatches that are submitted once.
func (x *part) whole() Work { return Work{Zero: x.zero(), List: x.dispatches} }

// drop releases what the dispatches use.
func (c *cutList) drop(d *Runner) {
	for _, x := range c.parts {
		for _, b := range [...]Buffer{x.params, x.faults} {
			if b != nil {
				d.memory.dropWords(b)
			}
		}
	}
	c.giveBack(d)
	d.shaders.drop(c.uses...)
}
