package planstore

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// MaxClasses limits the searches for sizes outside the classes of the plans from one exploration.
// After that, the existing plans serve all sizes.
const MaxClasses = 8

// class is the set of sizes at which a plan is known to be the best. At other sizes the plan also
// runs, until a better one is found.
type class struct {
	Sizes  atomic.Pointer[[]fusion.Size] // nil: all sizes
	others *atomic.Int32                 // number of searches for other sizes; shared by all plans from one exploration
}

func (c *class) startClass(sizes []fusion.Size) {
	c.others = new(atomic.Int32)
	c.SetClass(sizes)
}

// SetClass sets the sizes of the class; no sizes means all.
func (c *class) SetClass(sizes []fusion.Size) {
	if len(sizes) == 0 {
		c.Sizes.Store(nil)
		return
	}
	c.Sizes.Store(&sizes)
}

// widen adds the sizes of another class: a search at those sizes found the same plan.
func (c *class) widen(sizes []fusion.Size) {
	for {
		old := c.Sizes.Load()
		if old == nil {
			return
		}
		var wide *[]fusion.Size
		if both := fusion.Widen(*old, sizes); len(both) > 0 {
			wide = &both
		}
		if c.Sizes.CompareAndSwap(old, wide) {
			return
		}
	}
}

// Suits reports whether a segment that the plan serves is in its class.
func (c *class) Suits(seg *segment.Segment) bool {
	sizes := c.Sizes.Load()
	return sizes == nil || fusion.Suits(*sizes, seg)
}

// planText returns the text of the plan with its present class.
func (e *Known) planText() string {
	p := *e.Plan
	p.Sizes = nil
	if sizes := e.Sizes.Load(); sizes != nil {
		p.Sizes = *sizes
	}
	return p.String()
}

// better returns a better plan than e if there is one, else e: one of the cache on disk for these
// sizes, or one from a search for which the program waits. It searches only if the segment has the
// leaf's own form. A segment of another form may have equal sizes by chance, and its plan could be
// wrong for other segments of the leaf.
func (q *Query) better(at *leaf, e *Known, wants []int) (_ *Known, hit bool, err error) {
	key := func(i int) *queue.Key { return &q.Entries[i].Key }
	if q.Improvable(e, q.Seg) && at.Exactly(len(q.Entries), key) {
		if !e.Suits(q.Seg) {
			if _, suited := q.recall(wants, true); suited != nil {
				q.Counts.Hits.Add(1)
				return suited, true, nil
			}
		}
		if better := q.improve(q.newSearch(at, e, wants)); better != nil {
			return better, false, nil
		}
	}
	q.Counts.Hits.Add(1)
	return e, true, nil
}
