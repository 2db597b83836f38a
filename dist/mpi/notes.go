//go:build linux && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/internal/nap"
)

// A Note is one message of the sender's rank, the text's length and the text. It is sent whole, so
// that a status, which each family stores in its own way, need not be read.
const (
	noteHead = 8
	noteSize = noteHead + dist.MaxNote
)

// notes sends and receives Notes on a communicator of its own.
type notes struct {
	comm      uintptr
	sent      []int // to each rank
	received  int   // from all
	sending   []*note
	receiving *note
	arrived   []*note
}

// note is a message on its way. It and its text are parts of one object, which is pinned.
type note struct {
	message pending
	text    [noteSize]byte
}

func newNote() *note {
	n := &note{}
	n.message.requests = make([]uintptr, 0, 1)
	n.message.pinned.Pin(unsafe.SliceData(n.message.requests[:1]))
	n.message.pinned.Pin(&n.text[0])
	return n
}

// Note sends a text to a rank.
func (d *driver) Note(to int, text []byte) error {
	if d.closed {
		return errClosed
	}
	if to < 0 || to >= d.info.Size {
		return fmt.Errorf("mpi: Note to rank %d of %d", to, d.info.Size)
	}
	if len(text) > dist.MaxNote {
		return fmt.Errorf("mpi: Note of %d bytes; the longest has %d", len(text), dist.MaxNote)
	}
	n := newNote()
	binary.LittleEndian.PutUint32(n.text[0:], uint32(d.info.Rank))
	binary.LittleEndian.PutUint32(n.text[4:], uint32(len(text)))
	copy(n.text[noteHead:], text)
	err := d.call("MPI_Isend", d.isend, uintptr(unsafe.Pointer(&n.text[0])), noteSize, d.byte, uintptr(to), 0, d.notes.comm, uintptr(n.message.request()))
	if err != nil {
		n.message.pinned.Unpin()
		return fmt.Errorf("mpi: Note: %w", err)
	}
	d.notes.sending = append(d.notes.sending, n)
	d.notes.sent[to]++
	return nil
}

// Notes returns a Note that has arrived.
func (d *driver) Notes() (from int, text []byte, ok bool) {
	if len(d.notes.arrived) == 0 {
		return 0, nil, false
	}
	n := d.notes.arrived[0]
	d.notes.arrived = d.notes.arrived[1:]
	from = int(binary.LittleEndian.Uint32(n.text[0:]))
	length := min(int(binary.LittleEndian.Uint32(n.text[4:])), dist.MaxNote)
	return from, n.text[noteHead:][:length], true
}

// poll receives Notes, and reports whether one arrived. MPI_Iprobe says when to begin, so that no
// receive is pending when MPI_Finalize is called.
func (n *notes) poll(d *driver) (bool, error) {
	if err := n.forget(d); err != nil {
		return false, err
	}
	if n.receiving == nil {
		d.flag = 0
		err := d.call("MPI_Iprobe", d.iprobe, uintptr(d.anySource), 0, n.comm, uintptr(unsafe.Pointer(&d.flag)), uintptr(unsafe.Pointer(&d.status)))
		if err != nil || d.flag == 0 {
			return false, err
		}
		r := newNote()
		err = d.call("MPI_Irecv", d.irecv, uintptr(unsafe.Pointer(&r.text[0])), noteSize, d.byte, uintptr(d.anySource), 0, n.comm, uintptr(r.message.request()))
		if err != nil {
			r.message.pinned.Unpin()
			return false, err
		}
		n.receiving = r
	}
	d.advance(&n.receiving.message)
	if !n.receiving.message.done {
		return false, n.receiving.message.err
	}
	n.arrived = append(n.arrived, n.receiving)
	n.received++
	n.receiving = nil
	return true, nil
}

// forget forgets the Notes that are on their way without this process.
func (n *notes) forget(d *driver) error {
	rest := n.sending[:0]
	var failed error
	for _, s := range n.sending {
		if s.message.err == nil {
			d.advance(&s.message)
		}
		if s.message.err != nil {
			failed = s.message.err
		}
		if !s.message.done {
			rest = append(rest, s)
		}
	}
	n.sending = rest
	return failed
}

// closing is how long Close waits for other ranks.
const closing = time.Minute

// settle receives all Notes that were sent: no communicator may be freed before. Ranks tell each
// other how many there are.
func (d *driver) settle() error {
	const width = 8
	size := d.info.Size
	send, recv, at := make([]byte, width*size), make([]byte, width*size), make([]int, size+1)
	for r := range at {
		at[r] = r * width
	}
	for r, n := range d.notes.sent {
		binary.LittleEndian.PutUint64(send[at[r]:], uint64(n))
	}
	copy(part(recv, at, d.info.Rank), part(send, at, d.info.Rank))
	p, err := d.AllToAll(send, recv, at, at)
	if err != nil {
		return err
	}
	for end := time.Now().Add(closing); ; nap.For(50 * time.Microsecond) {
		if _, err := d.Poll(); err != nil {
			return err
		}
		done, err := p.Done()
		if err != nil {
			return err
		}
		missing := len(d.notes.sending)
		if done {
			for r := range size {
				missing += int(binary.LittleEndian.Uint64(recv[at[r]:]))
			}
			missing -= d.notes.received
		}
		if done && missing == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("Close waited %v for other ranks to call it too", closing)
		}
	}
}
