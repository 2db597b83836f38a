package dist

import "unsafe"

// The functions of this file exchange bytes. They run on the lane's goroutine, between [World.meet]
// and the end of the call, and assume that all ranks run the same one with the same sizes. Memory
// must be aligned for its elements.

// aligned makes memory for elements of any dtype.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// room is memory for one call. The next call uses it again.
func (w *World) room(n int) []byte {
	if len(w.lane.room) < n {
		w.lane.room = aligned(n)
	}
	return w.lane.room[:n]
}

// cuts divides count elements of size bytes among the ranks, in offsets of bytes.
func (w *World) cuts(count, size int) []int {
	n := w.info.Size
	at := make([]int, n+1)
	for r := range at {
		at[r] = (count/n*r + min(r, count%n)) * size
	}
	return at
}

// gather returns what all ranks send: rank r's bytes are at at[r] to at[r+1].
func (w *World) gather(send []byte, at []int) ([]byte, error) {
	recv := aligned(at[len(at)-1])
	return recv, w.gatherInto(recv, send, at)
}

func (w *World) gatherInto(recv, send []byte, at []int) error {
	return w.loop.begin([][]byte{send, recv}, func(d Driver) (Pending, error) { return d.AllGather(send, recv, at) }).wait()
}

func (w *World) exchange(recv, send []byte, sendAt, recvAt []int) error {
	return w.loop.begin([][]byte{send, recv}, func(d Driver) (Pending, error) { return d.AllToAll(send, recv, sendAt, recvAt) }).wait()
}

func (w *World) broadcast(buf []byte, root int) error {
	return w.loop.begin(buf, func(d Driver) (Pending, error) { return d.Broadcast(buf, root) }).wait()
}

// sumPart writes this rank's part of the sum to dst: of src, which has a part for each rank. add is a
// function of the table of sums.
func (w *World) sumPart(add func(dst []byte, parts [][]byte), dst, src []byte, at []int) error {
	n, mine := w.info.Size, len(dst)
	recv := w.room(n * mine)
	recvAt, parts := make([]int, n+1), make([][]byte, n)
	for r := range parts {
		recvAt[r+1] = recvAt[r] + mine
		parts[r] = recv[recvAt[r]:recvAt[r+1]]
	}
	if err := w.exchange(recv, src, at, recvAt); err != nil {
		return err
	}
	add(dst, parts)
	return nil
}

// sum writes the sum of all ranks' src to dst, which may be the same memory: each rank adds a part,
// and then gathers all parts. size is that of an element. Every rank sends and receives about twice the bytes of src.
func (w *World) sum(add func(dst []byte, parts [][]byte), size int, dst, src []byte) error {
	if w.info.Size == 1 {
		copy(dst, src)
		return nil
	}
	at := w.cuts(len(src)/size, size)
	mine := dst[at[w.info.Rank]:at[w.info.Rank+1]]
	if err := w.sumPart(add, mine, src, at); err != nil {
		return err
	}
	return w.gatherInto(dst, mine, at)
}
