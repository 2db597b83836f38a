package stream

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Where a stream is cut depends on the program only. Eager code is cut early, so that it
// runs while more is recorded. A scope, and the function of a Recording, say themselves
// where a stretch ends: what is in one is left whole, up to a length that a program which
// does everything in a scope must not pass.

const (
	defaultCap = 64 // items of eager code from which a cut is looked for

	stepCap    = 4096 // ops of a step at most
	stepWindow = 16   // ops that must repeat before a loop in a scope is taken to have come round
	stepItems  = 4    // items for each op, at most
	stepSlots  = 6    // operands and results for each, so that there are fewer than the 2^15 that remembered plans name
)

func (d *Device) softCap() int {
	if c := d.Opts.QueueCap; c > 0 {
		return c
	}
	return defaultCap
}

// inStep reports that the program says itself where the stretch ends that is being
// recorded. Caps of a few ops are for running op by op, and hold everywhere.
func (s *Stream) inStep() bool {
	return s.soft > segment.Window && (s.scopes.Load() > 0 || s.taping != nil)
}

// maybeCut cuts the stream where the policy says so. It is not called while
// relative ids are in use, since a flush voids them. The lock is held.
func (s *Stream) maybeCut() {
	if len(s.q.Items)-s.extra >= s.soft || s.weight > s.budget {
		s.cut()
	}
}

// Whole keeps the stream of an op of these operands from being cut until end is called:
// what is recorded meanwhile is one op of the program, and is planned as one. Steps are cut
// all the same where they are too long.
func Whole(hs ...*Value) (end func()) {
	p, ok := Beside(hs...)
	if !ok {
		return func() {}
	}
	p.S.whole.Add(1)
	return func() { p.S.whole.Add(-1) }
}

// policy is where to cut a queue with n items of the program's own; none where it is
// certain that it is not cut.
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
		if s.soft > segment.Window { // room for a loop a few times as long
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

// cut looks at the program's own items only: which results come with a recipe
// depends on the plans that ran before, and cuts must not. But for queues that
// recipes make very long.
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

// ownAt is where the program's own item i of n stands in the queue. Those that are asked for
// are near the ends.
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

// endStep is the end of a scope that is in no other, a good place to cut a stream: what
// nobody needs any more has been released. Of what is not, what was made in a scope was
// kept, and so is written; of other results nobody knows. Scopes of a few ops are no
// steps, and are left to be joined with what is around them. The lock is held.
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

// keep has a result of the queue written, which one that nothing is made of is anyway. The
// lock is held.
func (s *Stream) keep(id int32) {
	if sl := &s.q.Slots[id]; sl.Def >= 0 && sl.Uses > 0 && !sl.Keep && !sl.Released {
		s.step(s.q.Mark(ir.Keep, id))
	}
}
