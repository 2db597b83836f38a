package memory

import (
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// AllocShared returns zeroed memory of Go's heap. It counts as live until it is freed. It never
// goes to the pool, because slices of it may still be in use.
func (m *Pool) AllocShared(n int64) (runtime.Buffer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.grant(n); err != nil {
		return nil, err
	}
	const align = 64
	if n > math.MaxInt-align || n > m.limit-m.used() {
		return nil, m.refuse(n)
	}
	m.trim(m.limit - m.used() - n)
	all := make([]byte, n+align)
	at := -uintptr(unsafe.Pointer(unsafe.SliceData(all))) % align
	b := m.hand(unsafe.Pointer(unsafe.SliceData(all[at:])), n, n)
	b.shared = all[at : int64(at)+n : int64(at)+n]
	m.shared.Add(1)
	return b, nil
}
