//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"
)

// pending is a dist.Pending: a list of requests of MPI. The library reads and writes the operands'
// memory until they are complete. It is pinned, so that the garbage collector neither moves nor
// frees it; copies of it outside of Go's heap would cost a pass over each byte.
//
// A pending operation that failed stays in the driver's list with its memory: the library may still
// use it.
type pending struct {
	name     string
	requests []uintptr // the first of them are complete
	complete int
	pinned   runtime.Pinner
	done     bool
	err      error
}

// Done reports whether the operation was complete, or had failed, at the last Poll.
func (p *pending) Done() (bool, error) { return p.done || p.err != nil, p.err }

// begin makes an operation of at most n requests.
func (d *driver) begin(name string, n int) *pending {
	p := &pending{name: name, requests: make([]uintptr, 0, n)}
	if n > 0 {
		p.pinned.Pin(unsafe.SliceData(p.requests[:1]))
	}
	d.begun++
	return p
}

// request returns the place of one more request.
func (p *pending) request() unsafe.Pointer {
	p.requests = p.requests[:len(p.requests)+1]
	return unsafe.Pointer(&p.requests[len(p.requests)-1])
}

// dropRequest takes the last request back: the call that should have made it failed.
func (p *pending) dropRequest() { p.requests = p.requests[:len(p.requests)-1] }

// pin pins memory. Memory outside of Go's heap stays where it is anyway.
func (p *pending) pin(b []byte) {
	if len(b) > 0 {
		p.pinned.Pin(unsafe.SliceData(b))
	}
}

// began ends the beginning of an operation: with err it has failed.
func (d *driver) began(p *pending, err error) (*pending, error) {
	if err == nil && len(p.requests) == 0 {
		p.done = true
		p.pinned.Unpin()
		return p, nil
	}
	if err != nil {
		p.err = fmt.Errorf("mpi: %w", err)
	}
	d.active = append(d.active, p)
	return p, p.err
}

// advance tests the requests in their order. The library makes progress with all of them meanwhile.
func (d *driver) advance(p *pending) {
	for p.complete < len(p.requests) {
		done, err := d.tested(unsafe.Pointer(&p.requests[p.complete]))
		if err != nil {
			p.err = fmt.Errorf("mpi: %s: %w", p.name, err)
		}
		if err != nil || !done {
			return
		}
		p.complete++
	}
	p.done = true
	p.pinned.Unpin()
}

// tested calls MPI_Test.
func (d *driver) tested(request unsafe.Pointer) (bool, error) {
	d.flag = 0
	err := d.call("MPI_Test", d.test, uintptr(request), uintptr(unsafe.Pointer(&d.flag)), uintptr(unsafe.Pointer(&d.status)))
	return d.flag != 0, err
}

// Poll advances all pending operations and receives Notes.
func (d *driver) Poll() (some bool, err error) {
	if d.closed {
		return false, errClosed
	}
	for _, p := range d.active {
		if p.err == nil {
			d.advance(p)
			some = some || p.done || p.err != nil
		}
	}
	if some {
		d.active = slices.DeleteFunc(d.active, func(p *pending) bool { return p.done })
	}
	arrived, err := d.notes.poll(d)
	if err != nil {
		return some, fmt.Errorf("mpi: notes: %w", err)
	}
	return some || arrived, nil
}
