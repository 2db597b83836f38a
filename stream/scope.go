package stream

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Scope owns tensors by descent: the tensors created on it, and every result with an operand that
// the scope owns, unless an inner scope owns another operand. At its end it releases the tensors
// that it still owns. The lock of its home guards it, because most of its ops are on that stream
// and so need no second lock.
type Scope struct {
	home  *Stream // also the home of the outer scopes
	outer *Scope
	depth int
	where operror.Site // where it was opened

	owned  []*Value
	closed bool
	room   [32]*Value // first memory of owned, because steps are often short
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

// Ended returns an error if the scope has ended, and nil otherwise.
func (sc *Scope) Ended() error {
	sc.home.mu.Lock()
	defer sc.home.mu.Unlock()
	if !sc.closed {
		return nil
	}
	return fmt.Errorf("%w: the scope opened at %s has ended", runtime.ErrClosed, sc.where)
}

// Home returns the stream of creation ops on the scope.
func (sc *Scope) Home() *Stream { return sc.home }

// outwards returns the scope n steps further out, nil if there is none.
func (sc *Scope) outwards(n uint32) *Scope {
	for ; n > 0 && sc != nil; n-- {
		sc = sc.outer
	}
	return sc
}

func deeper(a, b *Scope) bool {
	return a != nil && (b == nil || a.depth > b.depth)
}

// adopt adds v, whose fields already name the scope, to the values that the scope's end releases.
// A closed scope passes v on to the next outer scope. The lock is held.
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

// makeRoom removes values that the scope no longer owns before the list grows, because a scope
// may last as long as the program.
func (sc *Scope) makeRoom() {
	n := len(sc.owned)
	if n == 0 {
		sc.owned = sc.room[:0]
		return
	}
	sc.owned = slices.DeleteFunc(sc.owned, func(v *Value) bool { return v.owner() != sc })
	if was := sc.owned; len(was) > n/2 { // otherwise the next search would come too soon
		sc.owned = slices.Grow(was, n)
		clear(was) // owned may start in sc.room, which would keep these values alive
	}
}

// enter adds a new value of the stream to a scope, if sc is not nil. The stream's lock is held.
// If the scope's home is another stream, whose lock must not be taken now, the caller calls
// entered after the unlock.
func (s *Stream) enter(v *Value, sc *Scope) {
	if sc == nil {
		return
	}
	v.born = sc
	if sc.home == s {
		sc.adopt(v)
	}
}

// enterReady is enter for a value in memory. If no scope owns the value, it makes the collector
// report the value's death. It decides that under the same lock as enter. Otherwise a scope that
// ends in between could release the memory, and the collector would release it a second time.
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
	if v.owner() == nil { // all scopes are closed
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

// Close releases the tensors that the scope owns, in the order in which they were made. The end
// of a scope without an outer scope may end a segment.
func (sc *Scope) Close() {
	sc.home.mu.Lock()
	owned, again := sc.owned, sc.closed
	sc.owned, sc.closed = nil, true
	sc.home.mu.Unlock()
	by := &ext{scope: sc}
	var at *Stream // the stream whose lock is held
	take := func(s *Stream) {
		if at != nil {
			at.still = false
			at.maybeCut()
			at.mu.Unlock()
		}
		at = s
		at.mu.Lock()
		at.still = true // no cuts until all tensors of the scope are released
	}
	for _, h := range owned {
		if h.owner() != sc { // it was released before, and Set may have given it another value
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
	clear(sc.room[:]) // released handles refer to the scope; the scope must not refer to them
}

// Release gives a value up. Its memory returns to the pool when it has no other reader. Later use
// of the handle is ErrReleased.
func Release(v *Value) { v.release(releasedHere()) }

// Drop is Release for a value that the program cannot name, such as a step of a composite op. It
// does not record the source line: the program cannot ask for it, and finding it takes longer
// than the rest.
func Drop(v *Value) {
	if at := v.names.Load(); at != nil && v.home == nil && v.state == stNone { // most handles that Same made
		if v.names.CompareAndSwap(at, &noMore) {
			at.end(&dropped)
		}
		return
	}
	v.release(&dropped)
}

// Give is Drop for a value that its owner gave to a Recording.
func Give(v *Value) { v.release(&given) }

var dropped, given ext

// noMore is the value that a handle of Same names after Drop.
var noMore = Value{state: stReleased, ext: &dropped}

func init() { noMore.more.Store(unnamed) }

// drop ends a value that no handle names any more. by tells how it was given up. The lock is
// held.
func (s *Stream) drop(v *Value, by *ext) {
	was, recipe := v.state, v.ext
	if was == stFailed || was == stReleased {
		return // they keep the reason
	}
	v.state, v.ext = stReleased, by
	switch was {
	case stPending:
		s.mark(ir.Release, v.id)
	case stReady:
		if recipe != nil { // it was lent
			recipe.drop()
		}
		b := v.mem.Load().Block
		v.mem.Store(nil)     // before the block loses a reader: see ready
		queued := v.queued() // the queue is still a reader of it
		if queued {
			s.watchRead(b)
		}
		b.ReleaseAs(memory.Handles)
		if queued {
			s.mark(ir.Release, v.id)
		}
	case stVirtual:
		s.endCopy(recipe.lease)
		recipe.drop()
	}
}

// mark records a Release or Keep item for a relative id. The lock is held.
func (s *Stream) mark(op ir.Op, id int32) {
	if op == ir.Release {
		s.q.Slots[id].H.v = nil // the program cannot request it any more
	}
	s.step(s.q.Mark(op, id))
	s.maybeCut()
}

// watch makes the collector report the death of a value that no scope owns. The lock is held, or
// the value is not shared yet.
func (s *Stream) watch(v *Value) {
	switch v.state {
	case stReady:
		v.mem.Load().Watch()
	case stVirtual:
		v.ext.recipe.watch()
		v.recipe().watch()
	}
}
