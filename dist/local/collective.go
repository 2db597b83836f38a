package local

import (
	"fmt"
	"time"

	"github.com/millrace-go/millrace/dist"
)

// pending is a collective of one rank.
type pending struct {
	kind string
	recv [][]byte // the place of each rank's part; nil if it is here, or does not come
	left int      // parts that are missing
	done bool
	err  error
}

// Done needs no lock: Poll is called by the same goroutine.
func (p *pending) Done() (bool, error) { return p.done, p.err }

// expect adds a collective that receives a part from each rank that has a place.
func (d *driver) expect(kind string, recv [][]byte) *pending {
	p := &pending{kind: kind, recv: recv}
	for _, r := range recv {
		if r != nil {
			p.left++
		}
	}
	p.done = p.left == 0
	if !p.done {
		d.pending = append(d.pending, p)
	}
	return p
}

// checkOffsets finds offsets that do not divide a buffer into parts.
func (d *driver) checkOffsets(at []int, size int) error {
	if len(at) != d.net.Size()+1 {
		return fmt.Errorf("%d offsets were given for %d ranks", len(at), d.net.Size())
	}
	last := 0
	for _, a := range at {
		if a < last || a > size {
			return fmt.Errorf("offsets %v do not ascend within %d bytes", at, size)
		}
		last = a
	}
	return nil
}

// places are the parts of a buffer; an empty part is not nil.
func places(buf []byte, at []int) [][]byte {
	parts := make([][]byte, len(at)-1)
	for r := range parts {
		parts[r] = buf[at[r]:at[r+1]:at[r+1]]
		if parts[r] == nil {
			parts[r] = []byte{}
		}
	}
	return parts
}

func (d *driver) AllToAll(send, recv []byte, sendAt, recvAt []int) (dist.Pending, error) {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return nil, err
	}
	if err := d.checkOffsets(sendAt, len(send)); err != nil {
		return nil, err
	}
	if err := d.checkOffsets(recvAt, len(recv)); err != nil {
		return nil, err
	}
	for to, part := range places(send, sendAt) {
		if to != d.num {
			d.post("all-to-all", to, part)
		}
	}
	from := places(recv, recvAt)
	from[d.num] = nil
	return d.expect("all-to-all", from), nil
}

func (d *driver) AllGather(send, recv []byte, recvAt []int) (dist.Pending, error) {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return nil, err
	}
	if err := d.checkOffsets(recvAt, len(recv)); err != nil {
		return nil, err
	}
	for to := range d.net.ranks {
		d.post("all-gather", to, send)
	}
	return d.expect("all-gather", places(recv, recvAt)), nil
}

func (d *driver) Broadcast(buf []byte, root int) (dist.Pending, error) {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return nil, err
	}
	if root < 0 || root >= d.net.Size() {
		return nil, fmt.Errorf("a broadcast from rank %d of %d", root, d.net.Size())
	}
	recv := make([][]byte, d.net.Size())
	if root != d.num {
		recv[root] = places(buf, []int{0, len(buf)})[0]
		return d.expect("broadcast", recv), nil
	}
	for to := range d.net.ranks {
		if to != root {
			d.post("broadcast", to, buf)
		}
	}
	return d.expect("broadcast", recv), nil
}

// Poll moves parts that have arrived to their places. The parts from one rank come in the order of
// its collectives.
func (d *driver) Poll() (some bool, err error) {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return false, err
	}
	now := time.Now()
	awaited := make([]bool, d.net.Size()) // by an earlier collective
	left := d.pending[:0]
	for _, p := range d.pending {
		for from, place := range p.recv {
			if place == nil || awaited[from] {
				continue
			}
			box := d.inbox[from]
			if len(box) == 0 || box[0].at.After(now) {
				awaited[from] = true
				continue
			}
			m := box[0]
			d.inbox[from] = box[1:]
			p.take(from, m)
		}
		if p.left == 0 || p.err != nil {
			p.done, some = true, true
		} else {
			left = append(left, p)
		}
	}
	d.pending = left
	for _, m := range d.notes {
		some = some || !m.at.After(now)
	}
	return some, nil
}

// take receives a part.
func (p *pending) take(from int, m message) {
	place := p.recv[from]
	p.recv[from] = nil
	p.left--
	if m.kind != p.kind || len(m.data) != len(place) {
		p.err = fmt.Errorf("%d bytes of %s came from rank %d where %d bytes of %s were due", len(m.data), m.kind, from, len(place), p.kind)
		return
	}
	copy(place, m.data)
}
