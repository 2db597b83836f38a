package gpurun

import "github.com/millrace-go/millrace/runtime"

// home is memory of one result of a list that runs again and again. Some buffers return to it when
// they are freed, and others get them only if memory lacks. The list then meets the same buffers again
// and need not be recorded anew.
type home struct {
	dev    *Runner
	m      *memory
	many   int     // buffers that return to it
	free   []chunk // those that no tensor has
	closed bool
}

const (
	maxHome   = mostSeen // buffers that return to a home
	homeBytes = 1 << 20  // of the largest such buffer: launches on larger ones take longer than their submission
)

var _ runtime.Homer = (*Runner)(nil)

// NewHome returns nil if the Device has no recordings: it gains nothing then.
func (d *Runner) NewHome() runtime.Home {
	if _, ok := d.gpu.(Recorder); !ok {
		return nil
	}
	return &home{dev: d, m: &d.memory}
}

// Alloc allocates memory for the result.
func (h *home) Alloc(n int64) (runtime.Buffer, error) {
	if err := h.dev.enter(); err != nil {
		return nil, err
	}
	b, err := h.m.allocAt(h, n)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// take returns free memory of a size, if there is some. The caller holds the memory's lock.
func (h *home) take(size int64) (c chunk, ok bool) {
	if h == nil || len(h.free) == 0 || h.free[len(h.free)-1].mem.Size() != size {
		return c, false
	}
	at := len(h.free) - 1
	c, h.free[at] = h.free[at], chunk{}
	h.free = h.free[:at]
	h.m.pooled -= size
	return c, true
}

// settle makes a buffer return to the home, if there is room. The caller holds the memory's lock.
func (h *home) settle(mem Buffer) {
	if h == nil || h.closed || h.m.closed || h.many == maxHome || mem.Size() > homeBytes {
		return
	}
	if h.m.homes == nil {
		h.m.homes = map[Buffer]*home{}
	}
	h.m.homes[mem] = h
	h.many++
}

// Close gives the memory to all.
func (h *home) Close() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if h.closed = true; h.m.closed || h.many == 0 {
		return
	}
	for mem, of := range h.m.homes {
		if of == h {
			delete(h.m.homes, mem)
		}
	}
	h.leave()
}

// leave pools the free buffers. The caller holds the memory's lock.
func (h *home) leave() {
	for _, c := range h.free {
		h.m.put(c)
	}
	h.free, h.many = nil, 0
}

// leaveHomes pools the free buffers of all homes. The caller holds the lock.
func (m *memory) leaveHomes() {
	for mem, h := range m.homes {
		delete(m.homes, mem)
		h.leave()
	}
}
