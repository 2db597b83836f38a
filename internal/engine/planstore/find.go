package planstore

import (
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// Find finds the plan of the segment or makes one. hit says that the plan was known. It fails
// only if the segment cannot even be planned unfused.
func (q *Query) Find() (e *Known, hit bool, err error) {
	empty := hasEmpty(q.Seg)
	var wants []int
	if at := q.Trie.Find(q.At, q.End); at != nil && !empty {
		e, w := known(at, q.Seg)
		wants = w
		if e != nil {
			if !e.Found.Load() && !e.Found.Swap(true) {
				q.Unpaid.Store(0)
			}
			return q.better(at, e, wants)
		}
	}
	if !empty {
		at, e := q.recall(wants, false)
		if e == nil {
			at, e = q.recallOnes(wants)
		}
		if e != nil {
			q.Unpaid.Store(0)
			return q.better(at, e, wants)
		}
	}
	opt := q.exploreOptions()
	var job *search // the search for a better plan than this one
	switch {
	case empty:
		opt.Mode = fusion.Unfused // without elements, sizes do not show what is worth fusing
	case opt.Mode == fusion.Best && q.Unpaid.Load() >= GreedyAfter:
		opt.Mode = fusion.Greedy
	case opt.Effort > 0 && q.Unpaid.Load() < SearchAfter:
		job = q.newSearch(nil, nil, wants)
	}
	e, err = q.Explore(q.Seg, opt)
	if err != nil && opt.Mode != fusion.Unfused && !device.Gone(err) {
		lines := q.KnownLines()
		why, line := q.unbuilt(q.Seg, func(node int32) string { return lines[node] }, err)
		q.Profile.Found(profile.OpByOp, err.Error(), line)
		if e, err = q.Explore(q.Seg, fusion.Options{Mode: fusion.Unfused}); err == nil {
			e.unbuilt = why
		}
	}
	if err != nil {
		return nil, false, err
	}
	if empty {
		e.lines = q.KnownLines()
		q.Spend(e.Progs) // such a plan is not stored, so its programs end with this run
		return e, false, nil
	}
	q.Unpaid.Add(1)
	e.wants = wants
	at := q.Add(e)
	q.remember(e)
	if job != nil && q.Improvable(e, q.Seg) {
		job.at, job.old = at, e
		q.improve(job)
	}
	return e, false, nil
}

// newSearch makes a search for a better plan of the queued segment, before a plan settles it.
func (q *Query) newSearch(at *leaf, old *Known, wants []int) *search {
	x := &search{at: at, old: old, seg: cloneSegment(q.Seg), wants: wants}
	if q.finder.Cache != nil {
		x.key = q.key(q.form())
	}
	return x
}

// cloneSegment copies a segment out of a stream's own slices.
func cloneSegment(seg *segment.Segment) segment.Segment {
	return segment.Segment{Nodes: slices.Clone(seg.Nodes), Out: slices.Clone(seg.Out),
		Tensors: slices.Clone(seg.Tensors), Scalars: slices.Clone(seg.Scalars)}
}

// KnownLines returns the source lines of the queued nodes: those that this queue recorded, else
// those of plans with the same beginning.
func (q *Query) KnownLines() []string {
	lines := make([]string, len(q.Seg.Nodes))
	copy(lines, q.Lines)
	at := q.Trie.Root()
	for i := range q.Entries {
		e := &q.Entries[i]
		at = q.Trie.Step(at, &e.Key)
		if e.Node >= 0 && lines[e.Node] == "" {
			lines[e.Node] = q.Trie.Note(at)
		}
	}
	return lines
}

// Add adds a plan to the trie. For operations recorded while a known plan still matched, it takes
// the source lines of that plan.
func (q *Query) Add(e *Known) *leaf {
	keys := make([]queue.Key, len(q.Entries))
	for i := range keys {
		keys[i] = q.Entries[i].Key
	}
	return q.addAs(keys, e)
}

// addAs is Add for a plan with other keys that serves the queued segment.
func (q *Query) addAs(keys []queue.Key, e *Known) *leaf {
	e.lines = q.KnownLines()
	return q.Trie.Add(keys, q.End, e, func(i int, note *string) {
		n := q.Entries[i].Node
		if n < 0 {
			return
		}
		if e.lines[n] == "" {
			e.lines[n] = *note
		} else if *note == "" {
			*note = e.lines[n]
		}
	})
}
