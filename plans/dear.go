package plans

import (
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/segment"
)

// SettleDear decides what becomes of dear results: those that the plan writes
// are there to stay, the others are virtual. Without a plan all are written.
func (e *Known) SettleDear(seg *segment.Segment) {
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Life != segment.LifeDear {
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

// want has results written that a plan left out and that were needed.
func want(seg *segment.Segment, ids []int) {
	for _, id := range ids {
		if mayBeWritten(seg, id) {
			seg.Tensors[id].Life = segment.LifeWrite
		}
	}
}

// writes reports that results wanted are there to stay where the plan runs. What it has in
// memory for its own steps only is not: its recipes do not start from there.
func (e *Known) writes(seg *segment.Segment, wants []int) bool {
	for _, id := range wants {
		if mayBeWritten(seg, id) && e.SetOf[id] >= 0 {
			return false
		}
	}
	return true
}

// mayBeWritten reports a result that somebody can ask for and that need not be written.
func mayBeWritten(seg *segment.Segment, id int) bool {
	life := seg.Tensors[id].Life
	return life == segment.LifeDear || life == segment.LifeVirtual
}

// costlyWork is how many lowered instructions an element of a result takes for it to be
// written once it was computed again: ten times what it takes to write and read it.
const costlyWork = 200

// Dearest finds what is to be written of a segment so that a result of it that was asked
// for, and so computed again from what need lists, need not be: the dear ones among these,
// or where one was released what is made of it first that somebody can ask for; and the
// result itself where its elements take much work from there.
func Dearest(seg *segment.Segment, need []bool, asked int32) (ids []int32) {
	work := make([]int, len(seg.Tensors))
	costs := make([]bool, len(seg.Tensors)) // what was made of a dear one that nobody can ask for
	for n := range seg.Nodes {
		id := seg.Out[n]
		if !need[id] || IsLeaf(&seg.Tensors[id]) {
			continue
		}
		node := &seg.Nodes[n]
		dear := segment.Dear(node.Op)
		work[id] = fusion.Work(seg, node)
		for _, a := range node.Args[:node.NArgs] {
			if !a.Scalar {
				dear = dear || costs[a.ID]
				work[id] = min(work[id]+work[a.ID], costlyWork)
			}
		}
		switch {
		case !dear:
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

// unwritten reports a tensor that no step of the plan puts into memory:
// what the steps of a chain hand over need not come to be there.
func (e *Known) unwritten(id int) bool {
	u := e.Plan.Uses()
	return id >= len(u.Write) || u.Write[id] < 0 || e.Plan.HandsOver(id)
}

// Replay notes that dear results of the plan's segment were computed again:
// for the plan that took its place too. With them go those that the plan was to
// write already: of a segment's plans the first ones are dropped when there are
// too many, and what they knew must not go with them.
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

// with is a list of different numbers with one more, if it is another one.
func with[T comparable](list []T, x T) []T {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}
