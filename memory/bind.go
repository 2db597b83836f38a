package memory

import "github.com/millrace-go/millrace/lane"

// A bound recording writes over memory that a handle names, again and again, and reads
// what others of its stream write. So it is a reader that those know of.

// Bind adds a reader that is a bound recording, whose runs are the lane's. It reports
// whether other bound recordings of that lane may write over the block all the same; to
// those of other lanes it is a reader like any.
func (b *Block) Bind(l *lane.Lane) (known bool) {
	b.Retain()
	b.Mem.mu.Lock()
	defer b.Mem.mu.Unlock()
	if b.binder != nil && b.binder != l {
		return false
	}
	b.binder = l
	b.bound.Add(1)
	return true
}

// Unbind is the end of that; known is what Bind said.
func (b *Block) Unbind(known bool) {
	if known {
		b.Mem.mu.Lock()
		if b.bound.Add(-1) == 0 {
			b.binder = nil
		}
		b.Mem.mu.Unlock()
	}
	b.Release()
}

// Alone reports that nobody reads the block but the value that has it and bound
// recordings of the lane, and that no job uses it but the lane's.
func (b *Block) Alone(by *lane.Lane) bool {
	return b.Refs.Load() == 1+b.bound.Load() && b.Quiet(by)
}
