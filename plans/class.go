package plans

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// MaxClasses bounds the searches for sizes outside the classes of the plans that
// came of one exploration. After that the plans there are serve all sizes.
const MaxClasses = 8

// class is what is known of the sizes at which a plan is the best.
// Outside them it runs all the same, until a better one is found.
type class struct {
	Sizes  atomic.Pointer[[]fusion.Size] // nil: all
	others *atomic.Int32                 // searches for other sizes, of all plans that came of one exploration
}

func (c *class) startClass(sizes []fusion.Size) {
	c.others = new(atomic.Int32)
	c.SetClass(sizes)
}

// SetClass has the class hold at these sizes, at all where there are none.
func (c *class) SetClass(sizes []fusion.Size) {
	if len(sizes) == 0 {
		c.Sizes.Store(nil)
		return
	}
	c.Sizes.Store(&sizes)
}

// widen has the class hold where another one does too: the plan was found there.
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

// planText is the text of the plan, with its class as it is by now.
func (e *Known) planText() string {
	p := *e.Plan
	p.Sizes = nil
	if sizes := e.Sizes.Load(); sizes != nil {
		p.Sizes = *sizes
	}
	return p.String()
}

// better gives a known plan, or a better one: that which the cache on disk holds
// for these sizes, or which was searched for while the program waits. A segment
// that is not of the leaf's own form is none to explore: what is equal in it by
// chance may not be in those that the leaf serves.
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
