package cpu

import "unsafe"

// threadMemory is the memory that a thread keeps from launch to launch.
type threadMemory struct {
	mapping
	bytes   int64
	args    args
	values  []t0Val
	tile    rowTile
	folding foldWalk
	walk    scatterWalk
	merged  mergedCache
}

// reserve returns at least n bytes for a launch, nil if memory is refused. The memory is aligned
// to a page if the system maps memory, else to 64 bytes. Its contents last until the next call.
// The garbage collector does not scan it.
func (m *threadMemory) reserve(n int64) unsafe.Pointer {
	if n > m.bytes || m.first == nil {
		m.free()
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

func (m *threadMemory) free() {
	if m.first != nil {
		m.unmap()
		m.mapping, m.bytes = mapping{}, 0
	}
}
