package memory

import (
	"cmp"
	"slices"
	"weak"

	"github.com/millrace-go/millrace/internal/profile"
)

// Describer is a Maker that can say in a line what a result is, and where the program
// asked for it, as far as that is known.
type Describer interface {
	Describe(id int32) (what, line string)
}

// note lists a block for Owners. Those that are gone are dropped when there would be
// twice as many.
func (m *Pool) note(b *Block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.noted) == cap(m.noted) {
		m.noted = slices.DeleteFunc(m.noted, func(w weak.Pointer[Block]) bool { return !w.Value().used() })
		m.noted = slices.Grow(m.noted, len(m.noted)+1)
	}
	m.noted = append(m.noted, weak.Make(b))
}

// MadeBy notes what computes the block, and which result it is. Where there is a profile,
// another goroutine may ask at any time.
func (b *Block) MadeBy(by Maker, id int32) {
	if b.Mem.Profile == nil {
		b.By, b.ID = by, id
		return
	}
	b.Mem.mu.Lock()
	defer b.Mem.mu.Unlock()
	b.By, b.ID = by, id
}

// used reports a block whose buffer is not the device's yet.
func (b *Block) used() bool { return b != nil && b.uses.Load() > 0 }

// maxOwners is how many owners are told apart.
const maxOwners = 32

// Owners tells who has memory, the most first. Only a device with a profile knows.
func (m *Pool) Owners() []profile.Owner {
	type who struct {
		by Maker
		id int32
	}
	m.mu.Lock()
	sums := map[who]profile.Owner{}
	for _, w := range m.noted {
		b := w.Value()
		if !b.used() {
			continue
		}
		k := who{b.By, b.ID}
		o := sums[k]
		o.Count, o.Bytes = o.Count+1, o.Bytes+b.Bytes
		sums[k] = o
	}
	m.mu.Unlock()
	list := make([]profile.Owner, 0, len(sums))
	for k, o := range sums {
		if d, ok := k.by.(Describer); ok {
			o.What, o.Line = d.Describe(k.id)
		} else if o.What = "data of the program"; k.by != nil {
			o.What = "a result"
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b profile.Owner) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.What, b.What))
	})
	if len(list) > maxOwners {
		rest := profile.Owner{What: "others"}
		for _, o := range list[maxOwners-1:] {
			rest.Count, rest.Bytes = rest.Count+o.Count, rest.Bytes+o.Bytes
		}
		list = append(list[:maxOwners-1], rest)
	}
	return list
}
