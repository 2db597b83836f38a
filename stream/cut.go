package stream

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// The place where a stream is cut depends on the program only. Eager code is cut early, so it
// runs while the program records more. A scope and the function of a Recording mark the end of a
// stretch themselves. Their stretch is not cut unless it gets too long: a program may do all its
// work in one scope.

const (
	defaultCap = 64 // items of eager code from which a cut is considered

	stepCap    = 4096 // largest number of ops in a step
	stepWindow = 16   // ops that must repeat in a scope to count as the next turn of a loop
	stepItems  = 4    // largest number of items per op
	stepSlots  = 6    // largest number of operands and results per op: a stored plan has fewer than 2^15
)

func (d *Device) softCap() int {
	if c := d.Opts.QueueCap; c > 0 {
		return c
	}
	return defaultCap
}

// inStep reports that the program marks the end of the current stretch itself. A stream with a
// cap of a few ops is meant to run op by op, so its cap applies everywhere.
func (s *Stream) inStep() bool {
	return s.soft > segment.Window && (s.scopes.Load() > 0 || s.taping != nil)
}

// maybeCut cuts the stream where the policy requires it. It must not be called while relative ids
// are in use, because a flush makes them invalid. The lock is held.
func (s *Stream) maybeCut() {
	if len(s.q.Items)-s.extra >= s.soft || s.weight > s.budget {
		s.cut()
	}
}

// Whole prevents cuts of the stream on which an op of these operands would be recorded, until end
// is called. The ops recorded meanwhile are one op of the program and are planned together. A
// step that is too long is cut nevertheless.
func Whole(hs ...*Value) (end func()) {
	p, ok := Beside(hs...)
	if !ok {
		return func() {}
	}
	p.S.whole.Add(1)
	return func() { p.S.whole.Add(-1) }
}

// policy returns where to cut a queue with n items of the program's own. any is false if the
// queue is certainly not cut.
func (s *Stream) policy(n int) (p segment.Policy, any bool) {
	heavy := s.weight > s.budget
	if s.inStep() {
		p = segment.Policy{Soft: n + 1, Hard: n + 1, Window: stepWindow}
		ops := s.q.Len() - s.redone
		if ops >= s.stepOps/2 {
			p.Soft = 0
		}
		if ops >= s.stepOps || len(s.q.Items) >= stepItems*s.stepOps || len(s.q.Slots) >= stepSlots*s.stepOps {
			p.Hard = n
		}
	} else {
		p = segment.Policy{Soft: s.soft, Hard: s.soft, Window: segment.Window}
		if s.soft > segment.Window { // room for loops a few times as long as the cap
			p.Hard = 4 * s.soft
		}
		if len(s.q.Items) >= 2*p.Hard {
			p.Hard = min(p.Hard, n)
		}
	}
	if heavy {
		p.Soft, p.Window = min(p.Soft, segment.Window+1), segment.Window
		if s.weight > 2*s.budget && n > segment.Window {
			p.Hard = n
		}
	}
	return p, n >= p.Soft || n >= p.Hard
}

// cut counts only the program's own items. The plans that ran before decide which results have a
// recipe, and cuts must not depend on them. Queues that recipes make very long are the exception.
func (s *Stream) cut() {
	n := len(s.q.Items) - s.extra
	p, any := s.policy(n)
	if !any || s.still || s.trial != nil || s.whole.Load() > 0 && s.q.Len()-s.redone < s.stepOps {
		return
	}
	cut := segment.Cut(p, n, func(i int) queue.Key {
		return s.q.Items[s.ownAt(i, n)].Key.Local()
	})
	if cut > 0 {
		s.flushPrefix(s.ownAt(cut-1, n)+1, segment.End{Reason: segment.ReasonCap, ID: -1}, false)
	}
}

// ownAt returns the queue index of the program's own item i of n. It searches from the nearer
// end, because callers need items near the ends.
func (s *Stream) ownAt(i, n int) int {
	if s.extra == 0 {
		return i
	}
	at, step, skip := 0, 1, i
	if i >= n/2 {
		at, step, skip = len(s.q.Items)-1, -1, n-1-i
	}
	for ; s.q.Items[at].Again || skip > 0; at += step {
		if !s.q.Items[at].Again {
			skip--
		}
	}
	return at
}

// endStep is called at the end of a scope that has no outer scope. This is a good place for a
// cut, because the values that are no longer needed have been released. Of the other results,
// endStep writes those that a scope made: the program kept them. It cannot know about the rest. A
// scope of few ops is no step and joins the ops around it. The lock is held.
func (s *Stream) endStep() {
	if n := len(s.q.Items) - s.extra; n < s.soft || s.trial != nil || s.taping != nil {
		return
	}
	for id := range s.q.Slots {
		if v := s.asked(int32(id)); v != nil && v.born != nil && s.q.Slots[id].Def >= 0 {
			s.keep(int32(id))
		}
	}
	s.flush(segment.End{Reason: segment.ReasonCap, ID: -1}, false)
}

// keep makes the queue write a result. A result that no op reads is written anyway. The lock is
// held.
func (s *Stream) keep(id int32) {
	if sl := &s.q.Slots[id]; sl.Def >= 0 && sl.Uses > 0 && !sl.Keep && !sl.Released {
		s.step(s.q.Mark(ir.Keep, id))
	}
}
