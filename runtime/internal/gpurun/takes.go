package gpurun

import "slices"

// take is a set of buffers of a list or of a section of it.
type take struct {
	at      []place
	seen    int         // runs with it
	refused bool        // it cannot be recorded
	work    []Recording // by part; none before it is recorded
}

// place is the memory of an operand.
type place struct {
	mem   Buffer
	bytes int64
}

// takes are the sets of buffers that were used last.
type takes struct {
	list  []*take // the most recently used first
	often int     // how often a set must have come before it is recorded again
}

const (
	maxTakes = 8  // sets that are remembered
	maxOften = 64 // bounds takes.often
)

// find returns the take of a run's buffers.
func (x *takes) find(now []place) (t *take) {
	at := slices.IndexFunc(x.list, func(t *take) bool { return slices.Equal(t.at, now) })
	switch n := len(x.list); {
	case at >= 0:
		t = x.list[at]
		x.list = slices.Delete(x.list, at, at+1)
	case n == maxTakes:
		t = x.list[n-1]
		if t.work != nil { // recordings take turns: only those that stay pay off
			x.often = min(2*x.often, maxOften)
		}
		t.drop()
		x.list = x.list[:n-1]
		*t = take{at: append(t.at[:0], now...)}
	default:
		t = &take{at: slices.Clone(now)}
	}
	t.seen++
	x.list = slices.Insert(x.list, 0, t)
	return t
}

// due reports whether a take is to be recorded now.
func (x *takes) due(t *take) bool { return t.seen > x.often && t.work == nil && !t.refused }

// drop releases all recordings.
func (x *takes) drop() {
	for _, t := range x.list {
		t.drop()
	}
	*x = takes{often: 1}
}

func (t *take) drop() {
	for _, w := range t.work {
		w.Release()
	}
	t.work = nil
}
