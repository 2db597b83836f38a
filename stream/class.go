package stream

import (
	"sync/atomic"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/segment"
)

// maxClasses bounds the searches for sizes outside the classes of the plans that
// came of one exploration. After that the plans there are serve all sizes.
const maxClasses = 8

// class is what an entry knows of the sizes at which its plan is the best.
// Outside them it runs all the same, until a better one is found.
type class struct {
	sizes  atomic.Pointer[[]fusion.Size] // nil: all
	others *atomic.Int32                 // searches for other sizes, of all plans that came of one exploration
}

func (c *class) startClass(sizes []fusion.Size) {
	c.others = new(atomic.Int32)
	c.setClass(sizes)
}

func (c *class) setClass(sizes []fusion.Size) {
	if len(sizes) == 0 {
		c.sizes.Store(nil)
		return
	}
	c.sizes.Store(&sizes)
}

// widen has the class hold where another one does too: the plan was found there.
func (c *class) widen(sizes []fusion.Size) {
	for {
		old := c.sizes.Load()
		if old == nil {
			return
		}
		var wide *[]fusion.Size
		if both := fusion.Widen(*old, sizes); len(both) > 0 {
			wide = &both
		}
		if c.sizes.CompareAndSwap(old, wide) {
			return
		}
	}
}

// suits reports whether a segment that the plan serves is in its class.
func (c *class) suits(seg *segment.Segment) bool {
	sizes := c.sizes.Load()
	return sizes == nil || fusion.Suits(*sizes, seg)
}

// planText is the text of the entry's plan, with its class as it is by now.
func (e *entry) planText() string {
	p := *e.plan
	p.Sizes = nil
	if sizes := e.sizes.Load(); sizes != nil {
		p.Sizes = *sizes
	}
	return p.String()
}

// better gives a known plan, or a better one: that which the cache on disk holds
// for these sizes, or which was searched for while the program waits. A segment
// that is not of the leaf's own form is none to explore: what is equal in it by
// chance may not be in those that the leaf serves.
func (s *Stream) better(at *leaf, e *entry, seg *segment.Segment, end segment.End, wants []int) (_ *entry, hit bool, err error) {
	d := s.dev
	key := func(i int) *queue.Key { return &s.q.Entries[i].Key }
	if d.improvable(e, seg) && at.Exactly(len(s.q.Entries), key) {
		if !e.suits(seg) {
			if _, suited := s.recall(seg, end, wants, true); suited != nil {
				d.stats.hits.Add(1)
				return suited, true, nil
			}
		}
		if better := d.improve(s.search(at, e, seg, end, wants)); better != nil {
			return better, false, nil
		}
	}
	d.stats.hits.Add(1)
	return e, true, nil
}
