package memory

import (
	"cmp"
	"slices"
	"weak"

	"github.com/millrace-go/millrace/internal/profile"
)

// Describer is a Maker that describes a result in one line, with the line of the program that
// recorded it if that is known.
type Describer interface {
	Describe(id int32) (what, line string)
}

// note lists a block for Owners. Dead entries are dropped before the list would double.
func (m *Pool) note(b *Block) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.noted) == cap(m.noted) {
		m.noted = slices.DeleteFunc(m.noted, func(w weak.Pointer[Block]) bool { return !w.Value().used() })
		m.noted = slices.Grow(m.noted, len(m.noted)+1)
	}
	m.noted = append(m.noted, weak.Make(b))
}

// Guesser is a Maker that writes some results unasked, and is told which of them are used.
type Guesser interface{ Used(id int32) }

// Unasked notes that the block's maker, a Guesser, wrote it although nothing asked for it.
func (b *Block) Unasked() { b.unasked.Store(true) }

// Used tells the block's maker that a segment or a read uses a block that it wrote unasked.
func (b *Block) Used() {
	if b.unasked.Load() && b.unasked.Swap(false) {
		b.By.(Guesser).Used(b.ID)
	}
}

// MadeBy notes the maker of the block and the result's id there. On a device with a profile another
// goroutine may read both at any time.
func (b *Block) MadeBy(by Maker, id int32) {
	b.unasked.Store(false)
	if b.Mem.Profile == nil {
		b.By, b.ID = by, id
		return
	}
	b.Mem.mu.Lock()
	defer b.Mem.mu.Unlock()
	b.By, b.ID = by, id
}

// used reports whether the block still has its buffer.
func (b *Block) used() bool { return b != nil && b.uses.Load() > 0 }

// maxOwners is the number of owners that are told apart.
const maxOwners = 32

// Owners lists the owners of memory, largest first. It needs a device with a profile.
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
