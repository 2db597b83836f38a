package memory

import "unsafe"

// Arena is memory of one thread, which it keeps from launch to launch.
type Arena struct {
	mapping
	bytes int64
}

// Reserve returns at least n bytes for a launch, nil if memory is refused. The memory is aligned
// to a page if the system maps memory, else to 64 bytes. Its contents last until the next call.
// The garbage collector does not scan it.
func (m *Arena) Reserve(n int64) unsafe.Pointer {
	if n > m.bytes || m.first == nil {
		m.Free()
		n = max((n+4095)&^4095, 64<<10)
		if n >= pageAligned {
			n = (n + hugePage - 1) / hugePage * hugePage
		}
		got, ok := mapMemory(n, n >= pageAligned)
		if !ok {
			return nil
		}
		m.mapping, m.bytes = got, n
	}
	return m.first
}

// Free returns the memory to the system.
func (m *Arena) Free() {
	if m.first != nil {
		m.unmap()
		m.mapping, m.bytes = mapping{}, 0
	}
}
