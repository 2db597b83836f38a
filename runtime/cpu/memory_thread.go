package cpu

import "unsafe"

// threadMemory is what a thread keeps from launch to launch.
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

// reserve is at least so many bytes for a launch, aligned to a page where the system maps
// memory and to 64 bytes elsewhere; nil where memory is refused. What is in it lasts until
// the next call. The collector does not look there.
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
