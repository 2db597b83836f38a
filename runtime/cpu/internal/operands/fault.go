package operands

import "sync"

// IndexFault holds the least index that was out of range, and its operand. The least one is kept,
// whichever thread finds it, so the message does not depend on the threads' order.
type IndexFault struct {
	mu             sync.Mutex
	Set            bool
	Operand, Index int64
}

// Reset forgets the index.
func (f *IndexFault) Reset() { f.Set, f.Operand, f.Index = false, 0, 0 }

// Note records an index that is out of range.
func (f *IndexFault) Note(operand int, index int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.Set || index < f.Index || index == f.Index && int64(operand) < f.Operand {
		f.Set, f.Operand, f.Index = true, int64(operand), index
	}
}
