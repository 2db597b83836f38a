package planstore

import (
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/segment"
)

// SettleCostly decides about each result that is costly to recompute (LifeCostly). If the plan writes
// it, it stays in memory; if not, it is virtual. Without a plan (a nil e) all are written.
func (e *Known) SettleCostly(seg *segment.Segment) {
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Life != segment.LifeCostly {
			continue
		}
		t.Life = segment.LifeWrite
		if e == nil {
			continue
		}
		if e.unwritten(id) {
			t.Life = segment.LifeVirtual
		}
	}
}

// want marks results as written that an earlier plan left out and that were needed later.
func want(seg *segment.Segment, ids []int) {
	for _, id := range ids {
		if mayBeWritten(seg, id) {
			seg.Tensors[id].Life, seg.Tensors[id].Lent = segment.LifeWrite, false
		}
	}
}

// writes reports that the plan writes all wanted results for good. A result that is in memory only
// for the plan's own steps does not count, because recipes cannot start from it.
func (e *Known) writes(seg *segment.Segment, wants []int) bool {
	for _, id := range wants {
		if mayBeWritten(seg, id) && e.SetOf[id] >= 0 {
			return false
		}
	}
	return true
}

// mayBeWritten reports a result that a handle may name and that a plan may leave out: it need not
// be written, or need not stay in memory.
func mayBeWritten(seg *segment.Segment, id int) bool {
	t := &seg.Tensors[id]
	return t.Life == segment.LifeCostly || madeAgain(t)
}

// costlyWork is the work per element, in lowered instructions, above which a result is written
// after it was recomputed once. It is ten times the work of writing and reading the element.
const costlyWork = 200

// Costliest picks the results to write so that later segments need not recompute them. The program
// needed result asked, which was computed again from the results that need marks. It picks the
// results among these that are costly to recompute. If such a result was released, it picks the
// first results made from it that a handle can name. It also picks asked itself if its elements
// take much work beyond the picked results.
func Costliest(seg *segment.Segment, need []bool, asked int32) (ids []int32) {
	each := fusion.Work(seg)
	work := make([]int, len(seg.Tensors))
	costs := make([]bool, len(seg.Tensors)) // released costly results, and released results made from them
	for n := range seg.Nodes {
		id := seg.Out[n]
		if !need[id] || IsLeaf(&seg.Tensors[id]) {
			continue
		}
		node := &seg.Nodes[n]
		costly := segment.Costly(node.Op)
		work[id] = each[n]
		for _, a := range node.Args[:node.NArgs] {
			if !a.Scalar {
				costly = costly || costs[a.ID]
				work[id] = min(work[id]+work[a.ID], costlyWork)
			}
		}
		switch {
		case !costly:
		case seg.Tensors[id].Life == segment.LifeDead:
			costs[id] = true
		default:
			ids, work[id] = append(ids, id), 0
		}
	}
	if work[asked] >= costlyWork && seg.Tensors[asked].Life != segment.LifeDead {
		ids = with(ids, asked)
	}
	return ids
}

// unwritten reports a tensor that the plan does not write to memory. Results that one step of a
// chain passes on to the next count as unwritten.
func (e *Known) unwritten(id int) bool {
	u := e.Plan.Uses()
	return id >= len(u.Write) || u.Write[id] < 0 || e.Plan.HandsOver(id)
}

// Replay records that costly results of the plan's segment were recomputed, in this plan and in
// the plans that replaced it. It adds the costly results that the plan already writes: if a
// segment has too many plans, the first ones are dropped, and this knowledge must not be lost
// with them.
func (e *Known) Replay(ids []int32) {
	if len(ids) == 0 {
		return
	}
	for ; e != nil; e = e.Next.Load() {
		var all []int32
		if old := e.Replayed.Load(); old != nil {
			all = slices.Clone(*old)
		}
		for _, id := range e.wants {
			all = with(all, int32(id))
		}
		for _, id := range ids {
			all = with(all, id)
		}
		e.Replayed.Store(&all)
	}
}

// with appends x to a list unless the list contains it.
func with[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}
