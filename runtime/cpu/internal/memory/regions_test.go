package memory

import (
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"
	"unsafe"
)

// TestRegions takes and gives blocks of many sizes: they are aligned, they do not overlap, and
// freed memory is unmapped.
func TestRegions(t *testing.T) {
	s := newRegions()
	rng := rand.New(rand.NewPCG(17, 1))
	type block struct {
		p    unsafe.Pointer
		mem  []byte
		mark byte
	}
	var out []block
	check := func(b block) {
		for _, i := range []int{0, len(b.mem) / 2, len(b.mem) - 1} {
			if b.mem[i] != b.mark {
				t.Fatalf("a block of %d bytes was written to by another", len(b.mem))
			}
		}
	}
	for i := range 5000 {
		if len(out) > 0 && rng.IntN(5) < 2 {
			k := rng.IntN(len(out))
			check(out[k])
			s.give(out[k].p)
			out = slices.Delete(out, k, k+1)
			continue
		}
		size := SizeClass(1 + rng.Int64N(1<<rng.IntN(20)))
		if i%500 == 0 {
			size = pageAligned + rng.Int64N(3)*hugePage
		} else if i%100 == 0 {
			size = size/64*64 + 192 // not a size class
		}
		p := s.alloc(size)
		if p == nil {
			t.Fatalf("no memory for %d bytes", size)
		}
		if uintptr(p)%64 != 0 || size >= pageAligned && goruntime.GOOS == "linux" && uintptr(p)%hugePage != 0 {
			t.Fatalf("%d bytes at %p", size, p)
		}
		b := block{p, unsafe.Slice((*byte)(p), size), byte(i)}
		for _, k := range []int{0, len(b.mem) / 2, len(b.mem) - 1} {
			b.mem[k] = b.mark
		}
		out = append(out, b)
	}
	// Small blocks share mappings.
	regions := map[*region]bool{}
	for _, r := range s.of {
		regions[r] = true
	}
	if n := len(regions); n > 400 || n*2 > len(out) {
		t.Errorf("%d mappings for %d blocks", n, len(out))
	}
	for _, b := range out {
		check(b)
		s.give(b.p)
	}
	if len(s.of)+len(s.open) > 0 {
		t.Errorf("%d blocks are out in the end, and of %d sizes there are regions", len(s.of), len(s.open))
	}
}

// TestRegionsForget checks that the pages of a freed block return to the system while other blocks
// of its region are in use.
func TestRegionsForget(t *testing.T) {
	if goruntime.GOOS != "linux" {
		t.Skip("blocks are given back with their region")
	}
	s := newRegions()
	const size = 64 << 10
	a, b := s.alloc(size), s.alloc(size)
	*(*byte)(a), *(*byte)(b) = 1, 1
	s.give(b)
	if c := s.alloc(size); c != b || *(*byte)(c) != 0 {
		t.Errorf("block %p has %d at its beginning; %p was given back", c, *(*byte)(c), b)
	}
	if *(*byte)(a) != 1 {
		t.Error("another block was given back")
	}
	s.close()
	if len(s.of)+len(s.open) > 0 {
		t.Error("something is out after the end")
	}
}
