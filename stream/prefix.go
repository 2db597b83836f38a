package stream

import (
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// again is an item behind a cut, with the information to record it a second time.
type again struct {
	item  queue.Item
	node  ir.Node
	form  *queue.Form     // of its result
	args  [3]queue.Scalar // its scalar operands
	out   held
	line  string                                     // source line, if this queue has it
	place *segment.Node[queue.Key, *planstore.Known] // its node in the trie before the cut, which may have the source line
}

// carried is a tensor that items behind a cut name. It lets these items find the tensor after the
// ops before the cut have run.
type carried struct {
	held
	dt      ir.DType
	form    *queue.Form
	carrier bool           // v was made only to carry the tensor across the cut
	now     int32          // its new relative id, -1 before it has one
	err     *operror.Error // why the tensor could not be made
}

// flushPrefix runs the first cut items of the queue, and records the other items again as the
// start of the next segment. The lock is held.
func (s *Stream) flushPrefix(cut int, end segment.End, wait bool) {
	if cut >= len(s.q.Items) || s.trial != nil {
		s.flush(end, wait)
		return
	}
	rest, across := s.cutAt(cut)
	for id := range across { // items behind the cut read them, and no handle is left that could ask for them
		if across[id].carrier {
			s.keep(int32(id))
		}
	}
	s.flush(end, wait)
	s.recordAgain(rest, across)
	if s.q.Len() == 0 {
		s.reset() // only releases of values that the flushed segment read were left
	}
}

// cutAt removes the items from cut on from the queue, and leaves the queue as if they had never
// been recorded. across is indexed by the old relative ids.
func (s *Stream) cutAt(cut int) (rest []again, across []carried) {
	q := &s.q
	nodes, slots := 0, 0
	s.node = s.dev.plans.Trie.Root()
	for i := range q.Items[:cut] {
		e := &q.Items[i]
		s.node = s.dev.plans.Trie.Step(s.node, &e.Key)
		if e.Node >= 0 {
			nodes, slots = int(e.Node)+1, int(e.Slot)+1
		}
	}
	across = make([]carried, len(q.Slots))
	for i := range across {
		across[i].now = -1
	}
	place := s.node
	for i := range q.Items[cut:] {
		e := &q.Items[cut+i]
		place = s.dev.plans.Trie.Step(place, &e.Key)
		a := again{item: *e, place: place}
		if e.Node < 0 {
			if sl := &q.Slots[e.Slot]; e.Key.Op() == ir.Release {
				sl.Released = false
			} else {
				sl.Keep = false
			}
			s.carry(across, e.Slot, nodes)
			rest = append(rest, a)
			continue
		}
		a.node, a.form, a.out = q.Node(e), q.Slots[e.Slot].Form, q.Slots[e.Slot].H
		a.line = (*planstore.Known)(nil).LineOf(s.lines, e.Node)
		for i, arg := range a.node.Args[:a.node.NArgs] {
			if arg.Scalar {
				a.args[i] = q.Scalars[arg.ID]
			} else {
				q.Slots[arg.ID].Uses--
				s.carry(across, arg.ID, nodes)
			}
		}
		rest = append(rest, a)
	}
	for id := slots; id < len(q.Slots); id++ { // operands that only the removed items read
		if h := q.Slots[id].H; h.st != nil {
			h.st.Release()
		}
	}
	q.Truncate(cut, nodes, slots)
	s.lines = s.lines[:min(len(s.lines), nodes)]
	return rest, across
}

// carry keeps a tensor reachable across the cut: an operand by a further reader of its memory, a
// result by a handle. A result of the removed items needs neither.
func (s *Stream) carry(across []carried, id int32, nodes int) {
	c, sl := &across[id], &s.q.Slots[id]
	if c.dt != ir.Invalid || int(sl.Def) >= nodes {
		return
	}
	c.held, c.dt, c.form = sl.H, sl.DT, sl.Form
	switch {
	case c.st != nil:
		c.st.Retain()
	case c.v == nil:
		c.carrier = true
		c.v = &Value{home: s, dt: sl.DT, form: sl.Form, state: stPending, id: id}
		sl.H.v = c.v
	}
}

// recordAgain appends the items that were behind a cut. It never cuts the queue.
func (s *Stream) recordAgain(rest []again, across []carried) {
	for i := range rest {
		a := &rest[i]
		if a.item.Node < 0 {
			if across[a.item.Slot].now < 0 && a.item.Key.Op() == ir.Release {
				continue // no item behind the cut reads it
			}
			c := &across[a.item.Slot]
			if a.item.Key.Op() == ir.Keep && c.now < 0 && c.v != nil && c.v.state == stVirtual {
				c.now = s.replay(c.v) // a copy would not be kept
			}
			if s.revive(c) != nil {
				continue
			}
			id := s.find(c)
			if a.item.Key.Op() == ir.Release {
				s.q.Slots[id].H.v = nil
			}
			s.step(s.q.Mark(a.item.Key.Op(), id))
			s.notOwn(len(s.q.Items)-1, a.item.Again)
			continue
		}
		out := &across[a.item.Slot]
		args := a.node.Args[:a.node.NArgs]
		for _, arg := range args { // before any operand is added to the queue
			if arg.Scalar {
				continue
			}
			if err := s.revive(&across[arg.ID]); err != nil {
				out.err = err
			}
		}
		if v := a.out.v; out.err != nil {
			if v != nil {
				v.state, v.ext = stFailed, &ext{err: out.err}
			}
			continue
		}
		for k, arg := range args {
			if arg.Scalar {
				a.node.Args[k].ID = s.q.Scalar(a.args[k].DT, a.args[k].Bits)
			} else {
				a.node.Args[k].ID = s.find(&across[arg.ID])
			}
		}
		out.now = s.push(&a.node, a.form, a.out)
		s.notOwn(len(s.q.Items)-1, a.item.Again)
		if v := a.out.v; v != nil {
			v.id, v.state = out.now, stPending
		}
		if s.node == nil || s.dev.Opts.Lines {
			if a.line == "" {
				a.line = s.dev.plans.Trie.Note(a.place)
			}
			s.noteLine(a.line)
		}
	}
	for i := range across {
		across[i].leave(s)
	}
}

// revive computes a carried tensor again if it became virtual, which appends ops. It returns the
// error of a tensor that could not be made.
func (s *Stream) revive(c *carried) *operror.Error {
	if c.now >= 0 || c.err != nil || c.st != nil {
		return c.err
	}
	switch c.v.state {
	case stVirtual:
		c.now = s.recall(c.v)
	case stFailed:
		c.err = c.v.ext.err
	}
	return c.err
}

// find returns the new relative id of a carried tensor, after revive.
func (s *Stream) find(c *carried) int32 {
	switch {
	case c.now >= 0:
	case c.st != nil && (c.v == nil || c.v.state != stReady):
		c.st.Retain()
		c.now = s.foreign(c.st, c.dt, c.form)
	case c.v.state == stReady:
		c.now = s.slot(c.v)
	default:
		c.now = c.v.id
	}
	return c.now
}

// leave drops the reader and the handle that carried the tensor across the cut.
func (c *carried) leave(s *Stream) {
	if c.st != nil {
		c.st.Release()
	}
	if !c.carrier {
		return
	}
	switch c.v.state {
	case stReady:
		if c.v.queued() {
			s.q.Slots[c.v.id].H.v = nil
		}
		c.v.mem.Load().ReleaseAs(memory.Handles)
	case stPending:
		s.q.Slots[c.v.id].H.v = nil
	case stVirtual:
		c.v.ext.drop()
	}
}
