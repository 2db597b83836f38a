package cpu

import (
	"math"
	goruntime "runtime"
	"unsafe"

	"github.com/millrace-go/millrace/runtime"
)

// AllocShared returns zeroed memory of Go's heap. It counts as live until it is freed. It never
// goes to the pool, because slices of it may still be in use.
func (d *device) AllocShared(n int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	return d.mem.allocShared(n)
}

// Shared returns the memory of a buffer of AllocShared.
func (d *device) Shared(b runtime.Buffer) []byte {
	if x, ok := b.(*buffer); ok {
		return x.shared
	}
	return nil
}

func (m *memory) allocShared(n int64) (runtime.Buffer, error) {
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

// pinShared pins the operands in Go's heap, because code gets their addresses as numbers. Most
// programs have none. An operand without elements has an address, too.
func (d *device) pinShared(pin *goruntime.Pinner, list []runtime.Launch) {
	for i := range list {
		for j := range list[i].Args {
			if b, ok := list[i].Args[j].Buf.(*buffer); ok && b.shared != nil {
				pin.Pin(b.p)
			}
		}
	}
}
