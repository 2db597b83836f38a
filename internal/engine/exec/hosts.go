package exec

import (
	"github.com/millrace-go/millrace/internal/engine/jobqueue"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/runtime"
)

// A list may have host ops between its launches. They divide it into stretches: the launches up to
// a host op run, then it begins. The launches behind it run meanwhile, up to the first one that
// uses the host op's memory, which waits. So a stretch has sections, each of which the device runs
// in one go.

// Host is an op of a list that no launch computes.
type Host interface {
	// Begin begins a run of the op for a stream: it will read in, after a moment, and write out, or
	// set out's fault. Begin does not wait. It returns the moment at which that is done. Both
	// blocks stay as they are until then.
	Begin(of Owner, after jobqueue.Moment, in *memory.Storage, out *memory.Block) jobqueue.Moment
}

// boundHost is a host op of a Bound.
type boundHost struct {
	op    Host
	in    seenAt
	out   int // slot; the number of a spot until the Sketch has ended
	part  int // number of parts before it
	at    int // number of launches before it
	first int // the first launch behind it that uses out; the number of launches if there is none

	held *memory.Storage // reader of the Sketch
}

// Host adds a host op, which reads in and writes that many bytes, behind the parts so far. It
// returns the memory of its result, with a reader for the caller. The memory of the operand is not
// used for anything else until the result is used.
func (k *Sketch) Host(op Host, in *memory.Storage, bytes int64) (*memory.Storage, error) {
	blk, err := k.mem.Pool.Alloc(bytes, false)
	if err != nil {
		return nil, err
	}
	blk.Home = k.bind.Lane
	n := k.placed(blk.Buf, bytes)
	k.known[&blk.Dense] = n
	h := boundHost{op: op, in: seenAt{k.read(in), in.View}, out: n, part: len(k.out.parts), at: len(k.out.launches), first: -1}
	if k.spots[h.in.slot].constant == nil {
		in.Retain()
		h.held = in
	}
	k.out.hosts = append(k.out.hosts, h)
	return &blk.Dense, nil
}

// awaited finds the host ops for which the last part waits, and drops the readers of their
// operands.
func (k *Sketch) awaited() {
	b := k.out
	for i := range b.hosts {
		h := &b.hosts[i]
		if h.first >= 0 {
			continue
		}
		for _, at := range k.uses[h.out] {
			if n := int(at.Launch); n >= h.at && (h.first < 0 || n < h.first) {
				h.first = n
			}
		}
		if h.first < 0 {
			continue
		}
		last := &b.parts[len(b.parts)-1]
		from, _ := last.known.Plan.ChainOf(h.first - last.first) // a chain runs as a whole
		h.first = last.first + from
		if h.held != nil {
			h.held.Release()
			h.held = nil
		}
	}
}

// stretch is a stretch of a Bound's parts.
type stretch struct {
	first, end int // parts
	sections   []*section
	begins     []int // the host ops that begin then
}

// cut divides the launches into stretches and sections. Launches behind those of the parts are the
// end of the last section.
func (b *Bound) cut() {
	b.unprepare()
	b.stretches = nil
	end := b.copiesFrom()
	var pending []int // host ops that have begun
	for part, at, next := 0, 0, 0; ; {
		st := stretch{first: part, end: len(b.parts)}
		stop := end
		if next < len(b.hosts) {
			st.end, stop = b.hosts[next].part, b.hosts[next].at
		}
		for at < stop {
			s := &section{first: at}
			to := stop
			left := pending[:0]
			for _, h := range pending {
				switch first := b.hosts[h].first; {
				case first == at:
					s.waits = append(s.waits, h)
					continue
				case first > at:
					to = min(to, first)
				}
				left = append(left, h)
			}
			pending = left
			s.n, at = to-at, to
			st.sections = append(st.sections, s)
		}
		for ; next < len(b.hosts) && b.hosts[next].part == st.end; next++ {
			st.begins, pending = append(st.begins, next), append(pending, next)
		}
		part = st.end
		b.stretches = append(b.stretches, st)
		if len(st.begins) == 0 {
			break
		}
	}
	last := &b.stretches[len(b.stretches)-1]
	if len(last.sections) == 0 || len(pending) > 0 {
		last.sections = append(last.sections, &section{first: end, waits: pending})
	}
	s := last.sections[len(last.sections)-1]
	s.n = len(b.launches) - s.first
	told := false
	for s := range b.sections {
		s.take(b)
		if !told && (s.n > 0 || len(b.hosts) == 0) {
			s.parts, told = b.parts, true
		}
	}
}

// sections yields all sections.
func (b *Bound) sections(yield func(*section) bool) {
	for i := range b.stretches {
		for _, s := range b.stretches[i].sections {
			if !yield(s) {
				return
			}
		}
	}
}

// begin begins the host ops behind a stretch.
func (r *run) begin(i int, after jobqueue.Moment) {
	for _, n := range r.b.stretches[i].begins {
		h := &r.b.hosts[n]
		in := r.blocks[h.in.slot]
		st := &in.Dense
		if h.in.view != nil {
			st = &memory.Storage{Block: in, View: h.in.view}
		}
		r.ends[n] = h.op.Begin(r.by.Owner, after, st, r.blocks[h.out])
	}
}

// await waits for host ops and returns the first error of their results.
func (r *run) await(hosts []int) (first *operror.Error) {
	for _, n := range hosts {
		await(r.by, r.ends[n:n+1])
		if e := r.blocks[r.b.hosts[n].out].Fault.Load(); e != nil && first == nil {
			first = e
		}
	}
	return first
}

// awaitAll waits for the host ops that began before a stretch.
func (r *run) awaitAll(i int) {
	for n := range r.b.stretches[:i] {
		for _, h := range r.b.stretches[n].begins {
			await(r.by, r.ends[h:h+1])
		}
	}
}

// ownOf returns the own buffers that only this section uses: nothing reads their contents after it.
func (b *Bound) ownOf(s *section) []runtime.Buffer {
	if len(b.hosts) == 0 {
		return b.nobodys
	}
	others := map[runtime.Buffer]bool{}
	for x := range b.sections {
		if x != s {
			for i := range x.launches {
				for _, a := range x.launches[i].Args {
					others[a.Buf] = true
				}
			}
		}
	}
	for i := range b.hosts {
		for _, slot := range []int{b.hosts[i].in.slot, b.hosts[i].out} {
			if own := slot - len(b.places); own >= 0 {
				others[b.still[own].Buf] = true
			}
		}
	}
	var list []runtime.Buffer
	for _, buf := range b.nobodys {
		if !others[buf] {
			list = append(list, buf)
		}
	}
	return list
}
