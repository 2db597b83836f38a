package gpurun

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"

	"github.com/millrace-go/millrace/runtime"
)

// A loop without recordings gives Run the same lists again and again. Run prepares a list that comes
// again. Later runs compare the list, put its buffers in, and submit it, recorded or not.

// repeat is a list of Run that is prepared.
type repeat struct {
	prepared
	hash       uint64
	dispatches int
	runs       int  // since it was prepared
	busy       bool // a Run uses it
	gone       bool // it is to be closed when it is no longer busy
	rest       int  // so often it runs unprepared, because preparing it did not pay off
	rested     int  // the last rest
}

// repeats are the lists that Run has prepared.
type repeats struct {
	mu    sync.Mutex
	seed  maphash.Seed
	list  []*repeat // the most recently used first
	seen  [256]sight
	often int // how often a list must have come before it is prepared
}

// sight counts how often lists with a hash came.
type sight struct {
	hash  uint64
	count int
}

const (
	maxRepeats  = 32   // lists that are prepared
	maxRepeated = 1024 // their dispatches: each may have several recordings
	worthRuns   = 4    // runs of a list that make up for preparing it
	minRest     = 64   // runs of a list that is not prepared for a while
	maxRest     = 4096
)

// repeated returns the prepared form of a list that came before, or nil. Its user calls done.
func (d *Runner) repeated(list []runtime.Launch) *repeat {
	if _, ok := d.gpu.(Recorder); !ok || !repeatable(list) {
		return nil
	}
	r := &d.repeats
	r.mu.Lock()
	defer r.mu.Unlock()
	hash := r.hash(list)
	at := slices.IndexFunc(r.list, func(x *repeat) bool { return x.hash == hash && sameList(x.list, list) })
	if at >= 0 {
		x := r.list[at]
		if x.rest > 0 {
			x.rest--
		}
		if x.busy || x.rest > 0 {
			return nil
		}
		copy(r.list[1:at+1], r.list[:at])
		r.list[0], x.busy = x, true
		return x
	}
	s := &r.seen[hash%uint64(len(r.seen))]
	if s.hash != hash {
		*s = sight{hash: hash}
	}
	if s.count++; s.count <= r.often {
		return nil
	}
	s.count = 0
	x := &repeat{prepared: prepared{dev: d, list: withoutBuffers(list), borrows: true}, hash: hash, busy: true}
	r.list = slices.Insert(r.list, 0, x)
	return x
}

// done ends the use of a list. It drops lists that were not used for long if there are too many. A list
// whose buffers seldom fit its dispatches runs unprepared for a while, ever longer.
func (d *Runner) done(x *repeat) {
	r := &d.repeats
	r.mu.Lock()
	defer r.mu.Unlock()
	x.busy = false
	x.runs++
	if x.dispatches = 0; x.cut != nil {
		x.dispatches = x.cut.count()
	}
	switch {
	case x.gone:
		x.Close()
		return
	case x.bad || x.cuts > worthRuns+x.runs/worthRuns || x.dispatches > maxRepeated/2:
		x.Close()
		x.bad, x.cuts, x.runs, x.dispatches = false, 0, 0, 0
		x.rested = min(max(2*x.rested, minRest), maxRest)
		x.rest = x.rested
		d.stats.unsteady.Add(1)
	}
	for len(r.list) > maxRepeats || r.dispatches() > maxRepeated {
		last := r.list[len(r.list)-1]
		if last.rest == 0 && last.runs < worthRuns {
			r.often = min(2*r.often, maxOften)
			d.stats.unsteady.Add(1)
		}
		r.drop(len(r.list) - 1)
	}
}

// dispatches counts those of all lists. The caller holds the lock, as that of drop does.
func (r *repeats) dispatches() (n int) {
	for _, x := range r.list {
		n += x.dispatches
	}
	return n
}

func (r *repeats) drop(at int) {
	x := r.list[at]
	r.list = slices.Delete(r.list, at, at+1)
	if x.gone = true; !x.busy {
		x.Close()
	}
}

// forget drops the lists that run a program.
func (r *repeats) forget(p *program) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.list) - 1; i >= 0; i-- {
		if slices.ContainsFunc(r.list[i].list, func(l runtime.Launch) bool { return l.Prog == p }) {
			r.drop(i)
		}
	}
}

// repeatable reports whether a list can come again. A plan that is replaced soon is not prepared.
func repeatable(list []runtime.Launch) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(l runtime.Launch) bool {
		_, ok := l.Prog.(*program)
		return !ok || l.Provisional || l.Rank < 0 || l.Rank > runtime.MaxRank
	})
}

// hash is equal for lists that differ in their buffers only.
func (r *repeats) hash(list []runtime.Launch) uint64 {
	h := uint64(len(list))
	add := func(x uint64) { h = bits.RotateLeft64((h^x)*0x9e3779b97f4a7c15, 29) }
	for i := range list {
		l := &list[i]
		add(maphash.Comparable(r.seed, l.Prog.(*program)))
		add(l.Choice)
		for _, n := range l.Dims[:l.Rank] {
			add(uint64(n))
		}
		for j := range l.Args {
			add(uint64(l.Args[j].Offset))
		}
		for _, x := range l.Scalars {
			add(x)
		}
	}
	return h
}

// sameList reports whether two lists differ in their buffers only.
func sameList(a, b []runtime.Launch) bool {
	return slices.EqualFunc(a, b, func(a, b runtime.Launch) bool {
		return a.Prog == b.Prog && a.Rank == b.Rank && a.Kept == b.Kept && a.Choice == b.Choice && a.Chain == b.Chain &&
			slices.Equal(a.Dims[:a.Rank], b.Dims[:a.Rank]) && slices.Equal(a.Scalars, b.Scalars) &&
			slices.EqualFunc(a.Args, b.Args, func(x, y runtime.Access) bool { return sameArg(&x, &y, a.Rank) })
	})
}

func sameArg(x, y *runtime.Access, rank int) bool {
	return x.Offset == y.Offset && x.IndexStride == y.IndexStride && x.IndexSize == y.IndexSize && x.Local == y.Local && x.Piece == y.Piece &&
		(x.Buf == nil) == (y.Buf == nil) && slices.Equal(x.Stride[:rank], y.Stride[:rank]) &&
		slices.EqualFunc(x.Stages, y.Stages, func(x, y runtime.Stage) bool {
			return x.Offset == y.Offset && slices.Equal(x.Dims, y.Dims) && slices.Equal(x.Stride, y.Stride)
		})
}

// withoutBuffers copies a list. Its buffers only say which operands have one.
func withoutBuffers(list []runtime.Launch) []runtime.Launch {
	list = copyList(list)
	for i := range list {
		for j := range list[i].Args {
			if a := &list[i].Args[j]; a.Buf != nil {
				a.Buf = (*buffer)(nil)
			}
		}
	}
	return list
}
