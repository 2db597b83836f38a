package fusion

import "github.com/millrace-go/millrace/ir"

// table is a hash map that is emptied in constant time. A search makes thousands of small bodies
// one after another; clearing a map of Go takes as long as the largest body so far did.
type table[K tableKey, V any] struct {
	slots []slot[K, V]
	now   uint32 // slots of other times are free
	count int
}

type tableKey interface {
	comparable
	hash() uint64
}

type slot[K tableKey, V any] struct {
	time  uint32
	key   K
	value V
}

// empty removes all entries and keeps the memory.
func (t *table[K, V]) empty() {
	t.count = 0
	if t.now++; t.now == 0 { // the counter has wrapped: old slots could look like new ones
		clear(t.slots)
		t.now = 1
	}
}

// at is the slot of a key, or the free slot where it belongs. The table must have a free slot.
func (t *table[K, V]) at(k K) *slot[K, V] {
	mask := uint64(len(t.slots) - 1)
	for i := k.hash(); ; i++ {
		if s := &t.slots[i&mask]; s.time != t.now || s.key == k {
			return s
		}
	}
}

func (t *table[K, V]) get(k K) (v V, ok bool) {
	if t.count == 0 {
		return v, false
	}
	if s := t.at(k); s.time == t.now {
		return s.value, true
	}
	return v, false
}

func (t *table[K, V]) set(k K, v V) {
	if 4*t.count >= 3*len(t.slots) {
		t.grow()
	}
	s := t.at(k)
	if s.time != t.now {
		t.count++
	}
	*s = slot[K, V]{t.now, k, v}
}

func (t *table[K, V]) grow() {
	old := table[K, V]{slots: t.slots, now: t.now}
	t.slots, t.now = make([]slot[K, V], max(64, 2*len(old.slots))), 1
	for i := range old.slots {
		if s := &old.slots[i]; s.time == old.now && t.count > 0 {
			*t.at(s.key) = slot[K, V]{t.now, s.key, s.value}
		}
	}
}

// mix spreads the bits of a word over the low ones, which number the slots.
func mix(h uint64) uint64 {
	h *= 0x9e3779b97f4a7c15
	return h ^ h>>32
}

// instrKey is an instruction as the key of a table.
type instrKey ir.Instr

func (k instrKey) hash() uint64 {
	h := mix(k.Imm ^ uint64(k.Op)<<56 ^ uint64(k.DT)<<48)
	h = mix(h ^ uint64(uint32(k.Args[0])) ^ uint64(uint32(k.Args[1]))<<32)
	return mix(h ^ uint64(uint32(k.Args[2])) ^ uint64(uint32(k.Args[3]))<<32)
}

func (k instance) hash() uint64 {
	h := uint64(uint32(k.tensor)) << 32
	if k.at != nil {
		h |= uint64(uint32(k.at.id))
	}
	if k.within {
		h = ^h
	}
	return mix(h)
}

// mapKey is a map and a step that extends it.
type mapKey struct {
	from *indexMap
	step stepKey
}

func (k mapKey) hash() uint64 {
	h := mix(uint64(uint32(k.from.id))<<32 | uint64(uint32(k.step.to)))
	h = mix(h ^ uint64(uint32(k.step.node))<<16 ^ uint64(k.step.rank)<<8 ^ uint64(k.step.kind))
	return mix(h ^ k.step.axes)
}

// crossing is a map and a node that it is extended across.
type crossing struct {
	from *indexMap
	edge edge
}

func (k crossing) hash() uint64 {
	h := uint64(uint32(k.from.id))<<32 | uint64(uint32(k.edge.node))
	if k.edge.up {
		h = ^h
	}
	return mix(h)
}
