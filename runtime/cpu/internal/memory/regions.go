package memory

import (
	"slices"
	"unsafe"
)

// regions takes blocks of memory from the system. If the system supports it, they are mapped
// outside Go's heap, where the garbage collector neither counts nor scans them. A large block is a
// mapping of its own and begins at a huge page. Small blocks of one size are cut from larger
// mappings, because the system maps whole pages and bounds the number of mappings. All blocks are
// aligned to 64 bytes.
type regions struct {
	open map[int64][]*region        // regions with free blocks, by block size
	of   map[unsafe.Pointer]*region // the region of every block in use
}

// region is a mapping, cut into blocks of one size.
type region struct {
	mapping
	size   int64
	blocks int64            // capacity
	fresh  int64            // blocks never used, the last ones of the region
	free   []unsafe.Pointer // blocks used before, and free now
}

// mapping is memory of the system, usable from first on.
type mapping struct {
	all   []byte // as mapped
	first unsafe.Pointer
}

const (
	// regionBytes is the size of a mapping of small blocks. Untouched blocks take no memory, so a
	// region has several blocks, however large they are.
	regionBytes = 1 << 20
	hugePage    = 2 << 20
)

func newRegions() regions {
	return regions{open: map[int64][]*region{}, of: map[unsafe.Pointer]*region{}}
}

// alloc returns a block of size bytes, a multiple of 64; nil if there is none.
func (s *regions) alloc(size int64) unsafe.Pointer {
	list := s.open[size]
	if len(list) == 0 {
		r := newRegion(size)
		if r == nil {
			return nil
		}
		list = append(list, r)
	}
	r := list[len(list)-1]
	p := r.take()
	if r.full() {
		list = list[:len(list)-1]
	}
	s.keep(size, list)
	s.of[p] = r
	return p
}

// give takes a block back. A region without blocks in use is unmapped.
func (s *regions) give(p unsafe.Pointer) {
	r := s.of[p]
	delete(s.of, p)
	list := s.open[r.size]
	if r.full() {
		list = append(list, r)
	}
	r.free = append(r.free, p)
	if r.idle() {
		list = slices.DeleteFunc(list, func(x *region) bool { return x == r })
		r.unmap()
	} else {
		discard(p, r.size)
	}
	s.keep(r.size, list)
}

// lose forgets a block, so that its region is never unmapped.
func (s *regions) lose(p unsafe.Pointer) { delete(s.of, p) }

// keep stores the list of regions with free blocks of a size.
func (s *regions) keep(size int64, list []*region) {
	if len(list) == 0 {
		delete(s.open, size)
		return
	}
	s.open[size] = list
}

// close frees all memory.
func (s *regions) close() {
	for p := range s.of {
		s.give(p)
	}
}

func newRegion(size int64) *region {
	n := int64(1)
	if size < pageAligned && size == SizeClass(size) { // other sizes get a region of one block
		n = max(regionBytes/size, regionLeast)
	}
	m, ok := mapMemory(n*size, size >= pageAligned)
	if !ok && n > 1 {
		n = 1
		m, ok = mapMemory(size, false)
	}
	if !ok {
		return nil
	}
	return &region{mapping: m, size: size, blocks: n, fresh: n}
}

func (r *region) take() unsafe.Pointer {
	if n := len(r.free); n > 0 {
		p := r.free[n-1]
		r.free = r.free[:n-1]
		return p
	}
	r.fresh--
	return unsafe.Add(r.first, (r.blocks-r.fresh-1)*r.size)
}

func (r *region) full() bool { return r.fresh == 0 && len(r.free) == 0 }
func (r *region) idle() bool { return r.fresh+int64(len(r.free)) == r.blocks }
