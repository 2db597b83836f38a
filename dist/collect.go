package dist

import "unsafe"

// The functions of this file exchange bytes. They run between [World.meet] and the
// end of a call, and assume that all ranks run the same one with the same sizes. Memory
// must be aligned for its elements.

// aligned makes memory for elements of any dtype.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// room is one of two memories for one call. The next call uses them again.
func (w *World) room(number, n int) []byte {
	if len(w.lane.room[number]) < n {
		w.lane.room[number] = aligned(n)
	}
	return w.lane.room[number][:n]
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
	return w.beginGather(recv, send, at).wait()
}

func (w *World) beginGather(recv, send []byte, at []int) *op {
	return w.loop.begin([][]byte{send, recv}, func(d Driver) (Pending, error) { return d.AllGather(send, recv, at) })
}

// exchange begins to send the parts of send to the other ranks.
func (w *World) exchange(recv, send []byte, sendAt, recvAt []int) *op {
	return w.loop.begin([][]byte{send, recv}, func(d Driver) (Pending, error) { return d.AllToAll(send, recv, sendAt, recvAt) })
}

func (w *World) broadcast(buf []byte, root int) error {
	return w.loop.begin(buf, func(d Driver) (Pending, error) { return d.Broadcast(buf, root) }).wait()
}

// sumPart writes this rank's part of the sum to dst: of src, which has a part for each rank.
func (w *World) sumPart(s summing, dst, src []byte, at []int) error {
	p := w.beginPart(0, src, at)
	if err := p.op.wait(); err != nil {
		return err
	}
	w.add(s, dst, p.parts)
	return nil
}

// partial is a sum whose parts are on their way.
type partial struct {
	op    *op
	parts [][]byte // of all ranks, this one's in its place in src
}

// beginPart begins to exchange parts of src, in the memory number of two.
func (w *World) beginPart(number int, src []byte, at []int) partial {
	n, own := w.info.Size, w.info.Rank
	mine := at[own+1] - at[own]
	recv := w.room(number, (n-1)*mine)
	recvAt, parts := make([]int, n+1), make([][]byte, n)
	for r := range parts {
		recvAt[r+1] = recvAt[r]
		if r != own {
			recvAt[r+1] += mine
		}
		parts[r] = recv[recvAt[r]:recvAt[r+1]]
	}
	parts[own] = src[at[own]:at[own+1]]
	return partial{w.exchange(recv, src, at, recvAt), parts}
}

// add adds parts. Code that could not be made is told once.
func (w *World) add(s summing, dst []byte, parts [][]byte) {
	if err := s.add(dst, parts); err != nil {
		w.slow.Do(func() { w.o.Log(err.Error()) })
	}
}

const (
	// smallSum is the most bytes of all ranks' parts together that each rank adds by itself: one
	// exchange in place of two.
	smallSum = 32 << 10
	// leastPiece is the size in which large sums are made. While the numbers of a piece are added,
	// the next one and the sums of the last one are on their way; and its memory stays in the cache.
	leastPiece = 2 << 20
	// leastMessage is the size that pieces give to messages at least.
	leastMessage = 256 << 10
)

// pieceSize is the bytes of a piece of n ranks, and pieces how many there are.
func pieceSize(n int) int     { return max(leastPiece, n*leastMessage) }
func pieces(n, bytes int) int { return (bytes + pieceSize(n) - 1) / pieceSize(n) }

// sum writes the sum of all ranks' src to dst, which may be the same memory: each rank adds a part,
// and then gathers all parts. Every rank sends and receives about twice the bytes of src.
func (w *World) sum(s summing, dst, src []byte) error {
	n, size := w.info.Size, s.dt.Size()
	if n == 1 {
		copy(dst, src)
		return nil
	}
	if n*len(src) <= smallSum {
		return w.smallSum(s, dst, src)
	}
	piece := pieceSize(n)
	count := pieces(n, len(src))
	exchange := func(i int) (partial, []int) {
		from, to := i*piece, min((i+1)*piece, len(src))
		at := w.cuts((to-from)/size, size)
		return w.beginPart(i%2, src[from:to], at), at
	}
	var last *op // of the sums of a piece
	next, at := exchange(0)
	for i := range count {
		p, cuts := next, at
		if i+1 < count {
			next, at = exchange(i + 1)
		}
		if err := p.op.wait(); err != nil {
			return err
		}
		to := dst[i*piece : min((i+1)*piece, len(dst))]
		mine := to[cuts[w.info.Rank]:cuts[w.info.Rank+1]]
		w.add(s, mine, p.parts)
		if last != nil {
			if err := last.wait(); err != nil {
				return err
			}
		}
		last = w.beginGather(to, mine, cuts)
	}
	return last.wait()
}

// smallSum gathers all ranks' src, and adds them.
func (w *World) smallSum(s summing, dst, src []byte) error {
	all, parts := w.room(0, w.info.Size*len(src)), make([][]byte, w.info.Size)
	at := w.equal(len(src))
	for r := range parts {
		parts[r] = all[at[r]:at[r+1]]
	}
	if err := w.gatherInto(all, src, at); err != nil {
		return err
	}
	w.add(s, dst, parts)
	return nil
}
