package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/millrace-go/millrace/dist"
)

// Link describes the way from one rank to another. The zero value moves everything at once.
type Link struct {
	Rate  float64       // bytes a second; 0: no limit
	Delay time.Duration // of each message
	Drop  bool          // loses every message
}

// Net has the ranks of one job and the links between them.
type Net struct {
	mu      sync.Mutex
	changed *sync.Cond
	ranks   []*rank
	aborted error
}

// rank is what a Net knows of one of its ranks.
type rank struct {
	links   []Link // to each rank
	busy    []time.Time
	inbox   [][]message // of collectives, from each rank
	notes   []message
	pending []*pending
	stopped bool
	killed  bool
	closed  bool
}

// message is on its way until its time.
type message struct {
	from int
	kind string // the collective; other ranks must run the same one
	data []byte
	at   time.Time
}

// New makes the links of a job of this many ranks, at least 1.
func New(ranks int) *Net {
	n := &Net{ranks: make([]*rank, max(ranks, 1))}
	n.changed = sync.NewCond(&n.mu)
	size := len(n.ranks)
	for i := range n.ranks {
		n.ranks[i] = &rank{links: make([]Link, size), busy: make([]time.Time, size), inbox: make([][]message, size)}
	}
	return n
}

// Size is the number of ranks.
func (n *Net) Size() int { return len(n.ranks) }

// SetLink changes the link from one rank to another. Messages under way stay as they are.
func (n *Net) SetLink(from, to int, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ranks[from].links[to] = l
}

// SetLinks changes all links between different ranks.
func (n *Net) SetLinks(l Link) {
	for from := range n.ranks {
		for to := range n.ranks {
			if from != to {
				n.SetLink(from, to, l)
			}
		}
	}
}

// Stop makes a rank's driver wait in its next call, as SIGSTOP does with a process.
func (n *Net) Stop(rank int) { n.set(func() { n.ranks[rank].stopped = true }) }

// Continue ends Stop.
func (n *Net) Continue(rank int) { n.set(func() { n.ranks[rank].stopped = false }) }

// Kill makes all calls of a rank's driver fail. Other ranks do not hear of it.
func (n *Net) Kill(rank int) {
	n.set(func() { n.ranks[rank].killed, n.ranks[rank].stopped = true, false })
}

func (n *Net) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
	n.changed.Broadcast()
}

// Opener is that of one rank's driver, for dist.Options.
func (n *Net) Opener(rank int) *dist.Opener {
	return &dist.Opener{
		Open:     func(context.Context) (dist.Driver, error) { return &driver{n, rank, n.ranks[rank]}, nil },
		Launched: func() (string, int) { return "dist/local", n.Size() },
	}
}

var (
	errKilled = errors.New("this rank was killed")
	errClosed = errors.New("this rank's driver is closed")
)

// enter locks the net for a call of a rank, which waits while the rank is stopped.
func (d *driver) enter() error {
	d.net.mu.Lock()
	for d.stopped && d.net.aborted == nil {
		d.net.changed.Wait()
	}
	switch {
	case d.killed:
		return errKilled
	case d.closed:
		return errClosed
	}
	return d.net.aborted
}

// driver is one rank's.
type driver struct {
	net *Net
	num int
	*rank
}

func (d *driver) Info() dist.Info {
	host, _ := os.Hostname() // "" if the system does not say; only messages name it
	size := d.net.Size()
	return dist.Info{Rank: d.num, Size: size, LocalRank: d.num, LocalSize: size, Host: host, Library: "goroutines"}
}

// send puts a message on the link to another rank.
func (d *driver) send(to int, m message) (arrives time.Time, lost bool) {
	l := d.links[to]
	if l.Drop {
		return arrives, true
	}
	now := time.Now()
	if l.Rate > 0 {
		if d.busy[to].Before(now) {
			d.busy[to] = now
		}
		d.busy[to] = d.busy[to].Add(time.Duration(float64(len(m.data)) / l.Rate * float64(time.Second)))
		now = d.busy[to]
	}
	return now.Add(l.Delay), false
}

// post sends a copy of a part of a collective.
func (d *driver) post(kind string, to int, data []byte) {
	m := message{from: d.num, kind: kind, data: append([]byte(nil), data...)}
	if at, lost := d.send(to, m); !lost {
		m.at = at
		box := d.net.ranks[to].inbox
		box[d.num] = append(box[d.num], m)
	}
}

func (d *driver) Note(to int, text []byte) error {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return err
	}
	if len(text) > dist.MaxNote {
		return fmt.Errorf("a note of %d bytes; the limit is %d", len(text), dist.MaxNote)
	}
	if to < 0 || to >= d.net.Size() {
		return fmt.Errorf("a note to rank %d of %d", to, d.net.Size())
	}
	m := message{from: d.num, data: append([]byte(nil), text...)}
	if d.links[to].Drop {
		return nil
	}
	m.at = time.Now().Add(d.links[to].Delay) // a note overtakes the bytes of collectives
	d.net.ranks[to].notes = append(d.net.ranks[to].notes, m)
	return nil
}

func (d *driver) Notes() (from int, text []byte, ok bool) {
	defer d.net.mu.Unlock()
	if d.enter() != nil {
		return 0, nil, false
	}
	now := time.Now()
	for i, m := range d.notes {
		if !m.at.After(now) {
			d.notes = append(d.notes[:i:i], d.notes[i+1:]...)
			return m.from, m.data, true
		}
	}
	return 0, nil, false
}

func (d *driver) Abort(int) {
	defer d.net.mu.Unlock()
	if d.enter() == nil {
		d.net.aborted = fmt.Errorf("rank %d ended the job", d.num)
		d.net.changed.Broadcast()
	}
}

func (d *driver) Close() error {
	defer d.net.mu.Unlock()
	if err := d.enter(); err != nil {
		return err
	}
	d.closed = true
	if len(d.pending) > 0 {
		return errors.New("closed with collectives pending")
	}
	return nil
}
