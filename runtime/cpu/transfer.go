package cpu

import (
	"fmt"
	goruntime "runtime"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// Alloc returns memory with undefined contents.
func (d *device) Alloc(n int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	return d.mem.Alloc(n)
}

// Free returns a buffer to the pool. Freeing it again does nothing.
func (d *device) Free(b runtime.Buffer) {
	x, ok := b.(*memory.Buffer)
	if !ok || d.enter() != nil {
		return
	}
	defer d.life.RUnlock()
	d.mem.Free(x)
}

// AllocShared returns zeroed memory of Go's heap. It counts as live until it is freed. It never
// goes to the pool, because slices of it may still be in use.
func (d *device) AllocShared(n int64) (runtime.Buffer, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.life.RUnlock()
	return d.mem.AllocShared(n)
}

// Shared returns the memory of a buffer of AllocShared.
func (d *device) Shared(b runtime.Buffer) []byte {
	if x, ok := b.(*memory.Buffer); ok {
		return x.Shared()
	}
	return nil
}

// Lend returns the memory of a buffer.
func (d *device) Lend(b runtime.Buffer) []byte {
	x, ok := b.(*memory.Buffer)
	if !ok || d.enter() != nil {
		return nil
	}
	defer d.life.RUnlock()
	mem, _ := x.Part(0, 1, x.Bytes())
	return mem
}

// Abandon keeps the memory of a buffer for ever.
func (d *device) Abandon(b runtime.Buffer) {
	x, ok := b.(*memory.Buffer)
	if !ok || d.enter() != nil {
		return
	}
	defer d.life.RUnlock()
	d.mem.Abandon(x)
}

// ResetPeak restarts PeakBytes from the bytes that are live now.
func (d *device) ResetPeak() { d.mem.ResetPeak() }

// Write copies elements into a buffer; off counts elements.
func (d *device) Write(dst runtime.Buffer, dt ir.DType, off int64, src []byte) error {
	return d.transfer(dst, dt, off, src, true)
}

// Read copies elements out of a buffer; off counts elements.
func (d *device) Read(dst []byte, dt ir.DType, src runtime.Buffer, off int64) error {
	return d.transfer(src, dt, off, dst, false)
}

// parallelCopy is the size from which a copy is worth several threads.
const parallelCopy = 1 << 20

func (d *device) transfer(b runtime.Buffer, dt ir.DType, off int64, host []byte, write bool) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.life.RUnlock()
	x, ok := b.(*memory.Buffer)
	n := int64(len(host))
	var inside []byte
	if ok {
		inside, ok = x.Part(off, int64(dt.Size()), n)
	}
	if !ok {
		return fmt.Errorf("cpu: the buffer has no place for %d bytes of %v at element %d", n, dt, off)
	}
	dst, src := host, inside
	if write {
		dst, src = inside, host
	}
	if n < parallelCopy {
		copy(dst, src)
		return nil
	}
	w := d.wide.TryLend()
	if w == nil { // all crews are in use
		copy(dst, src)
		return nil
	}
	w.exec.copyBytes(dst, src)
	d.wide.GiveBack(w)
	return nil
}

// pinShared pins the operands in Go's heap, because code gets their addresses as numbers. Most
// programs have none. An operand without elements has an address, too.
func (d *device) pinShared(pin *goruntime.Pinner, list []runtime.Launch) {
	for i := range list {
		for j := range list[i].Args {
			if b, ok := list[i].Args[j].Buf.(*memory.Buffer); ok && b.Shared() != nil {
				pin.Pin(b.P)
			}
		}
	}
}
