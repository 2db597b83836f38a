//go:build linux && (amd64 || arm64)

package mpi

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace/dist"
)

// tags is the number of tags that messages of collectives use in turn. MPI allows 32,768 at least.
// Messages of two collectives that ranks began in different orders do not match.
const tags = 1 << 14

// few is the number of ranks up to which AllGather sends messages of its own: then a head takes 1 µs
// in shared memory. MPICH 4 takes several polls for MPI_Iallgatherv, between which the World naps.
const few = 16

// AllToAll sends a part of send to each other rank and receives a part of recv from it.
//
// It sends messages of its own. MPI_Ialltoallv has 32-bit offsets, and a rank cannot know whether
// those of another one suffice; both libraries send the same messages for it.
func (d *driver) AllToAll(send, recv []byte, sendAt, recvAt []int) (dist.Pending, error) {
	if err := d.valid("send", send, sendAt); err != nil {
		return nil, fmt.Errorf("mpi: AllToAll: %w", err)
	}
	if err := d.valid("recv", recv, recvAt); err != nil {
		return nil, fmt.Errorf("mpi: AllToAll: %w", err)
	}
	return d.exchange("AllToAll", func(r int) []byte { return part(send, sendAt, r) }, func(r int) []byte { return part(recv, recvAt, r) })
}

// AllGather sends send to every rank.
func (d *driver) AllGather(send, recv []byte, recvAt []int) (dist.Pending, error) {
	if err := d.valid("recv", recv, recvAt); err != nil {
		return nil, fmt.Errorf("mpi: AllGather: %w", err)
	}
	own := part(recv, recvAt, d.info.Rank)
	if len(own) != len(send) {
		return nil, fmt.Errorf("mpi: AllGather: rank %d sends %d bytes and receives %d from itself", d.info.Rank, len(send), len(own))
	}
	copy(own, send)
	// All ranks know the offsets, so they take the same way.
	if d.info.Size <= d.few || recvAt[d.info.Size] > d.longest {
		return d.exchange("AllGather", func(int) []byte { return own }, func(r int) []byte { return part(recv, recvAt, r) })
	}
	if recvAt[d.info.Size] == recvAt[0] || d.info.Size == 1 {
		return d.began(d.begin("AllGather", 0), nil)
	}
	p := d.begin("AllGather", 1)
	p.pin(recv)
	counts, at := make([]int32, d.info.Size), make([]int32, d.info.Size)
	for r := range counts {
		counts[r], at[r] = int32(recvAt[r+1]-recvAt[r]), int32(recvAt[r])
	}
	// Both are operands of a pending operation.
	p.pinned.Pin(&counts[0])
	p.pinned.Pin(&at[0])
	err := d.call("MPI_Iallgatherv", d.iallgatherv, uintptr(d.inPlace), 0, d.byte, uintptr(unsafe.Pointer(&recv[0])),
		uintptr(unsafe.Pointer(&counts[0])), uintptr(unsafe.Pointer(&at[0])), d.byte, d.comm, uintptr(p.request()))
	if err != nil {
		p.dropRequest()
	}
	return d.began(p, err)
}

// Broadcast sends buf of root to all ranks.
func (d *driver) Broadcast(buf []byte, root int) (dist.Pending, error) {
	if d.closed {
		return nil, errClosed
	}
	if root < 0 || root >= d.info.Size {
		return nil, fmt.Errorf("mpi: Broadcast from rank %d of %d", root, d.info.Size)
	}
	if d.info.Size == 1 {
		buf = nil
	}
	p := d.begin("Broadcast", pieces(len(buf), d.longest))
	p.pin(buf)
	for len(buf) > 0 {
		n := min(len(buf), d.longest)
		err := d.call("MPI_Ibcast", d.ibcast, uintptr(unsafe.Pointer(&buf[0])), uintptr(n), d.byte, uintptr(root), d.comm, uintptr(p.request()))
		if err != nil {
			p.dropRequest()
			return d.began(p, err)
		}
		buf = buf[n:]
	}
	return d.began(p, nil)
}

// exchange sends to(r) to each other rank r and receives from(r) from it. Both ranks know how many
// bytes that is, and so in how many messages.
func (d *driver) exchange(name string, to, from func(r int) []byte) (*pending, error) {
	n := 0
	for r := range d.info.Size {
		if r != d.info.Rank {
			n += pieces(len(to(r)), d.longest) + pieces(len(from(r)), d.longest)
		}
	}
	p := d.begin(name, n)
	tag := uintptr(d.begun % tags)
	for k := 1; k < d.info.Size; k++ { // receives first, and not all ranks begin with the same one
		r := (d.info.Rank - k + d.info.Size) % d.info.Size
		if err := d.messages(p, "MPI_Irecv", d.irecv, from(r), r, tag); err != nil {
			return d.began(p, err)
		}
	}
	for k := 1; k < d.info.Size; k++ {
		r := (d.info.Rank + k) % d.info.Size
		if err := d.messages(p, "MPI_Isend", d.isend, to(r), r, tag); err != nil {
			return d.began(p, err)
		}
	}
	return d.began(p, nil)
}

// messages begins to send or receive b in messages that are short enough.
func (d *driver) messages(p *pending, name string, function uintptr, b []byte, peer int, tag uintptr) error {
	p.pin(b)
	for len(b) > 0 {
		n := min(len(b), d.longest)
		if err := d.call(name, function, uintptr(unsafe.Pointer(&b[0])), uintptr(n), d.byte, uintptr(peer), tag, d.comm, uintptr(p.request())); err != nil {
			p.dropRequest()
			return err
		}
		b = b[n:]
	}
	return nil
}

// pieces is the number of messages for n bytes.
func pieces(n, longest int) int { return (n + longest - 1) / longest }

// part is the part of b that belongs to rank r.
func part(b []byte, at []int, r int) []byte { return b[at[r]:at[r+1]] }

// valid checks offsets, and that the driver is open.
func (d *driver) valid(name string, b []byte, at []int) error {
	if d.closed {
		return errClosed
	}
	if len(at) != d.info.Size+1 {
		return fmt.Errorf("%s has %d offsets; %d ranks need %d", name, len(at), d.info.Size, d.info.Size+1)
	}
	if at[0] < 0 || at[len(at)-1] > len(b) {
		return fmt.Errorf("%s has offsets from %d to %d for %d bytes", name, at[0], at[len(at)-1], len(b))
	}
	for r := range d.info.Size {
		if at[r] > at[r+1] {
			return fmt.Errorf("%s has offset %d before %d", name, at[r], at[r+1])
		}
	}
	return nil
}
