package stream

import (
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// foresee marks costly results to be written although the program has not asked for them, so that
// later reads need not compute them again: see planstore.Foresight. The marks are part of the segment's
// form. It reports that it marked some. It is called for segments that do not run by a plan and
// layout that are known already: the same segment without marks is then known once it has run
// without them. The lock is held.
func (s *Stream) foresee(end segment.End) bool {
	if s.taped() || end.All || len(s.work.lent)+len(s.work.cheap) > 0 || s.dev.Opts.Fusion != device.FusionOn {
		return false
	}
	if at := s.dev.plans.Trie.Find(s.node, end); at != nil {
		for _, e := range at.Plans() {
			if e.None() {
				return false
			}
		}
	}
	ids := s.dev.plans.Foresight.Foresee(s.segment(end), s.caps, s.dev.pinnedLimit()/unaskedShare)
	if len(ids) == 0 {
		return false
	}
	s.work.items, s.work.node = len(s.q.Items), s.node
	s.markUnasked(ids)
	at := s.dev.plans.Trie.Find(s.node, end)
	if at == nil {
		return true
	}
	for _, e := range at.Plans() {
		useful := e.Useful(ids)
		if len(useful) == len(ids) {
			continue
		}
		s.unmark()
		s.markUnasked(useful)
		s.work.none = len(useful) == 0
		break
	}
	return true
}

// unaskedShare: results that are written unasked take at most this part of the memory that recipes
// may pin.
const unaskedShare = 4

func (s *Stream) markUnasked(ids []int32) {
	for _, id := range ids {
		s.step(s.q.Mark(ir.Keep, id))
	}
	s.work.unasked = append(s.work.unasked, ids...)
}

// unmark takes the marks of foresee back.
func (s *Stream) unmark() {
	for _, id := range s.work.unasked {
		s.q.Slots[id].Keep = false
	}
	s.q.Truncate(s.work.items, s.q.Len(), len(s.q.Slots))
	s.node, s.work.unasked = s.work.node, s.work.unasked[:0]
}

// wroteUnasked notes in the results that the plan writes unasked that their use is to be counted.
// The lock is held.
func (s *Stream) wroteUnasked(ent *planstore.Known) {
	if s.work.none {
		ent.WritesNone()
	}
	if len(s.work.unasked) == 0 {
		return
	}
	ent.Writes(s.work.unasked)
	for _, id := range s.work.unasked {
		if st := s.bind.Mem[id]; st != nil {
			st.Unasked()
		}
	}
}
