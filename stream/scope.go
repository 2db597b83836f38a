package stream

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/runtime"
)

// Scope owns tensors by descent: what was created on it, and every result one
// of whose operands it owns, unless an inner scope owns an operand too. When
// it closes, what it still owns is released. Its home's lock guards it, so that
// an op there, as most are, takes no other.
type Scope struct {
	home  *Stream // also of the scopes around it
	outer *Scope
	depth int
	where operror.Site // who opened it

	owned  []*Value
	closed bool
	room   [32]*Value // where owned starts: steps are often short
}

// OpenScope opens a scope on the stream.
func (s *Stream) OpenScope() *Scope {
	s.scopes.Add(1)
	return &Scope{home: s, depth: 1, where: operror.Here()}
}

// Inner opens a scope inside this one.
func (sc *Scope) Inner() *Scope {
	return &Scope{home: sc.home, outer: sc, depth: sc.depth + 1, where: operror.Here()}
}

// Ended is the error of who makes something on a scope whose end has been, else nil.
func (sc *Scope) Ended() error {
	sc.home.mu.Lock()
	defer sc.home.mu.Unlock()
	if !sc.closed {
		return nil
	}
	return fmt.Errorf("%w: the scope opened at %s has ended", runtime.ErrClosed, sc.where)
}

// Home is the stream that creation ops on the scope go to.
func (sc *Scope) Home() *Stream { return sc.home }

// outwards is the scope n steps further out, nil for none.
func (sc *Scope) outwards(n uint32) *Scope {
	for ; n > 0 && sc != nil; n-- {
		sc = sc.outer
	}
	return sc
}

func deeper(a, b *Scope) bool {
	return a != nil && (b == nil || a.depth > b.depth)
}

// adopt makes v, which says that the scope owns it, one of those that its end
// releases. A scope that is closed already passes it on. The lock is held.
func (sc *Scope) adopt(v *Value) {
	for sc.closed {
		if !v.leave(sc) || sc.outer == nil {
			return
		}
		sc = sc.outer
	}
	if len(sc.owned) == cap(sc.owned) {
		sc.makeRoom()
	}
	sc.owned = append(sc.owned, v)
}

// makeRoom forgets what the scope no longer owns before the list grows: a scope
// may last as long as the program.
func (sc *Scope) makeRoom() {
	n := len(sc.owned)
	if n == 0 {
		sc.owned = sc.room[:0]
		return
	}
	sc.owned = slices.DeleteFunc(sc.owned, func(v *Value) bool { return v.owner() != sc })
	if was := sc.owned; len(was) > n/2 { // else it is looked through too often
		sc.owned = slices.Grow(was, n)
		clear(was) // the scope's room is there as long as the scope, and would keep alive what leaves it
	}
}

// enter makes a new value of the stream a scope's, if there is one. The
// stream's lock is held: where the scope's home is another stream, whose lock
// must not be taken now, it is done by entered after the unlock.
func (s *Stream) enter(v *Value, sc *Scope) {
	if sc == nil {
		return
	}
	v.born = sc
	if sc.home == s {
		sc.adopt(v)
	}
}

// enterReady is enter for a value that is in memory, of which the collector is to
// tell where no scope owns it. It is asked for under the lock that enter needs:
// without it a scope that ends meanwhile may have given the memory back, and then
// the collector would do so once more.
func (s *Stream) enterReady(v *Value, sc *Scope, of *Value) {
	s.came(v, false, of)
	s.enter(v, sc)
	if v.owner() == nil {
		s.watch(v)
	}
}

func (s *Stream) entered(v *Value, sc *Scope) {
	if sc == nil || sc.home == s {
		return
	}
	sc.home.mu.Lock()
	sc.adopt(v)
	sc.home.mu.Unlock()
	if v.owner() == nil { // all closed
		s.mu.Lock()
		s.watch(v)
		s.mu.Unlock()
	}
}

// Owns reports that the end of the scope will release v.
func (sc *Scope) Owns(v *Value) bool { return v.owner() == sc }

// Keep moves v to the enclosing scope, or out of all scopes.
func (sc *Scope) Keep(v *Value) {
	sc.home.mu.Lock()
	i := len(sc.owned) - 1
	for i >= 0 && sc.owned[i] != v {
		i--
	}
	found := i >= 0 && v.leave(sc)
	if found {
		sc.owned = slices.Delete(sc.owned, i, i+1)
		if sc.outer != nil {
			sc.outer.adopt(v)
		}
	}
	sc.home.mu.Unlock()
	if found {
		v.now().toStay()
	}
	if found && v.owner() == nil {
		v.now().strays()
	}
}

// Close releases what the scope owns, in the order it was made. The end of one that is in
// no other may be the end of a segment.
func (sc *Scope) Close() {
	sc.home.mu.Lock()
	owned, again := sc.owned, sc.closed
	sc.owned, sc.closed = nil, true
	sc.home.mu.Unlock()
	by := &ext{scope: sc}
	var at *Stream // whose lock is held
	take := func(s *Stream) {
		if at != nil {
			at.still = false
			at.maybeCut()
			at.mu.Unlock()
		}
		at = s
		at.mu.Lock()
		at.still = true // until all is released that is not needed any more
	}
	for _, h := range owned {
		if h.owner() != sc { // it was released before, and may have been given another value
			continue
		}
		v := h.giveUp(by)
		if v == nil {
			continue
		}
		if at != v.home {
			take(v.home)
		}
		at.drop(v, by)
	}
	if sc.outer == nil && !again {
		if at != sc.home {
			take(sc.home)
		}
		at.scopes.Add(-1)
		at.endStep()
	}
	if at != nil {
		at.still = false
		at.maybeCut()
		at.unlock()
	}
	clear(sc.room[:]) // released handles point at the scope, not it at them
}

// Release gives a value up. Its memory returns to the pool when nothing else
// reads it; later use of the handle is ErrReleased.
func Release(v *Value) { v.release(releasedHere()) }

// Drop is Release of a value that nobody else has: a step of an op that is made
// of several. Where that was, which takes longer to find out than the rest,
// nobody will ask.
func Drop(v *Value) {
	if at := v.names.Load(); at != nil && v.home == nil && v.state == stNone { // of Same, as nearly all are
		if v.names.CompareAndSwap(at, &noMore) {
			at.end(&dropped)
		}
		return
	}
	v.release(&dropped)
}

// Give is Drop of a value that its owner gave to a Recording.
func Give(v *Value) { v.release(&given) }

var dropped, given ext

// noMore is what the handle of a call names behind it.
var noMore = Value{state: stReleased, ext: &dropped}

func init() { noMore.more.Store(unnamed) }

// drop ends a value that no handle names any more; by says who gave it up. The lock is
// held.
func (s *Stream) drop(v *Value, by *ext) {
	was, recipe := v.state, v.ext
	if was == stFailed || was == stReleased {
		return // those keep telling why
	}
	v.state, v.ext = stReleased, by
	switch was {
	case stPending:
		s.mark(ir.Release, v.id)
	case stReady:
		if recipe != nil { // it was lent
			recipe.recipe.drop()
		}
		b := v.mem.Load().Block
		v.mem.Store(nil)     // before the buffer has a reader less: see ready
		queued := v.queued() // the queue is still its reader
		if queued {
			s.watchRead(b)
		}
		b.ReleaseAs(memory.Handles)
		if queued {
			s.mark(ir.Release, v.id)
		}
	case stVirtual:
		recipe.recipe.drop()
	}
}

// mark records a Release or Keep item for a relative id. The lock is held.
func (s *Stream) mark(op ir.Op, id int32) {
	if op == ir.Release {
		s.q.Slots[id].H.v = nil // nobody can ask for it any more
	}
	s.step(s.q.Mark(op, id))
	s.maybeCut()
}

// watch lets the collector tell when a value that no scope owns dies. The lock
// is held, or the value is not shared yet.
func (s *Stream) watch(v *Value) {
	switch v.state {
	case stReady:
		v.mem.Load().Watch()
	case stVirtual:
		v.ext.recipe.watch()
	}
}
