package stream

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// entry is a plan with what this device needs to run it.
type entry struct {
	plan  *fusion.Plan
	progs []runtime.Program // one per step
	texts []string          // of their kernels
	memo  memo              // layout of the last shapes

	// Results that are not written, grouped by what they start from.
	sets  [][]int32
	setOf []int32

	found   atomic.Bool // a segment came back to it
	checked atomic.Bool // with Options.Check: compared with the op-by-op form

	// Dear results that the plan left unwritten and that were computed again
	// later; nil where there are none. Such a plan is not used any more: the
	// next one writes them.
	replayed atomic.Pointer[[]int32]

	improving                       // the search for a better one
	class                           // the sizes it is best at
	next      atomic.Pointer[entry] // the better one, when it was found

	lines []string // where the nodes were first recorded, as far as known
	text  string   // the segment it was explored on, for Explain
	wants []int    // dear results that it writes because they were asked for
}

// leaf is where the trie keeps the plans of a segment.
type leaf = segment.Leaf[queue.Key, *entry]

// greedyAfter is how many explorations that nobody profits from make a device
// stop searching for the best plan of segments it has not seen before: its
// programs never repeat, so a cheap plan is better. An exploration is of use
// when its plan is found for the first time. Known plans that go on being found
// prove nothing, and streams come and go: so neither hits nor explorations are
// counted by stream. A cheap plan that is found again is worth a search after
// all.
const greedyAfter = 32

// hasEmpty reports a tensor without elements. Such segments have plans of their
// own: with a product of 0, groups of dims look equal that are not.
func hasEmpty(seg *segment.Segment) bool {
	for i := range seg.Tensors {
		for _, n := range seg.Tensors[i].Shape {
			if n == 0 {
				return true
			}
		}
	}
	return false
}

// planFor finds the plan of a segment or makes one.
func (s *Stream) planFor(seg *segment.Segment, end segment.End) (e *entry, hit bool, err error) {
	d := s.dev
	empty := hasEmpty(seg)
	var wants []int
	if at := d.trie.Find(s.node, end); at != nil && !empty {
		e, w := known(at, seg)
		wants = w
		if e != nil {
			if !e.found.Load() && !e.found.Swap(true) {
				d.unpaid.Store(0)
			}
			return s.better(at, e, seg, end, wants)
		}
	}
	if !empty {
		at, e := s.recall(seg, end, wants, false)
		if e == nil {
			at, e = s.recallOnes(seg, end, wants)
		}
		if e != nil {
			d.unpaid.Store(0)
			return s.better(at, e, seg, end, wants)
		}
	}
	opt := d.exploreOptions()
	var job *search // for a better plan than this one
	switch {
	case empty:
		opt.Mode = fusion.Unfused // sizes say nothing about what is worth fusing
	case opt.Mode == fusion.Best && d.unpaid.Load() >= greedyAfter:
		opt.Mode = fusion.Greedy
	case opt.Effort > 0:
		job = s.search(nil, nil, seg, end, wants)
	}
	e, err = d.explore(seg, opt)
	if err != nil && opt.Mode != fusion.Unfused && !gone(err) {
		d.stats.fallbacks.Add(1)
		d.onError(err)
		e, err = d.explore(seg, fusion.Options{Mode: fusion.Unfused})
	}
	if err != nil {
		return nil, false, err
	}
	if empty {
		e.lines = s.knownLines()
		d.spend(e) // no plan that is found again
		return e, false, nil
	}
	d.unpaid.Add(1)
	e.wants = wants
	at := s.store(e, end)
	s.remember(e, end)
	if job != nil && d.improvable(e, seg) {
		job.at, job.old = at, e
		d.improve(job)
	}
	return e, false, nil
}

// known is the first plan whose guards admit a segment and whose class it is in,
// or the first whose guards admit it. The segment learns which dear results
// plans before it should have written; they are listed.
func known(at *leaf, seg *segment.Segment) (e *entry, wants []int) {
	n := 0 // wants before e
	for _, c := range at.Plans() {
		if again := c.replayed.Load(); again != nil {
			for _, id := range *again {
				wants = with(wants, int(id))
			}
		} else if c.plan.Check(seg) && c.writes(seg, wants) {
			if c.suits(seg) {
				e, n = c, len(wants)
				break
			}
			if e == nil {
				e, n = c, len(wants)
			}
		}
	}
	if e != nil {
		wants = wants[:n]
	}
	want(seg, wants)
	return e, wants
}

// search is one for a better plan of the queued segment, which no plan has
// settled yet.
func (s *Stream) search(at *leaf, old *entry, seg *segment.Segment, end segment.End, wants []int) *search {
	x := &search{at: at, old: old, seg: cloneSegment(seg), wants: wants}
	if s.dev.cache != nil {
		x.key = s.dev.plans.key(s.planForm(end))
	}
	return x
}

// cloneSegment copies a segment out of a stream's own slices.
func cloneSegment(seg *segment.Segment) segment.Segment {
	return segment.Segment{Nodes: slices.Clone(seg.Nodes), Out: slices.Clone(seg.Out),
		Tensors: slices.Clone(seg.Tensors), Scalars: slices.Clone(seg.Scalars)}
}

// knownLines is where the queued nodes were recorded: as this queue knows, else
// as plans with a common beginning do.
func (s *Stream) knownLines() []string {
	lines := make([]string, s.q.Len())
	copy(lines, s.lines)
	at := s.dev.trie.Root()
	for i := range s.q.Entries {
		e := &s.q.Entries[i]
		at = s.dev.trie.Step(at, &e.Key)
		if e.Node >= 0 && lines[e.Node] == "" {
			lines[e.Node] = s.dev.trie.Note(at)
		}
	}
	return lines
}

// store adds a plan to the trie. Lines of ops that were recorded while a known
// plan still matched come from that plan.
func (s *Stream) store(e *entry, end segment.End) *leaf {
	keys := make([]queue.Key, len(s.q.Entries))
	for i := range keys {
		keys[i] = s.q.Entries[i].Key
	}
	return s.storeAs(keys, e, end)
}

// storeAs is store for a plan of other keys, which serves the queued segment.
func (s *Stream) storeAs(keys []queue.Key, e *entry, end segment.End) *leaf {
	e.lines = s.knownLines()
	return s.dev.trie.Add(keys, end, e, func(i int, note *string) {
		n := s.q.Entries[i].Node
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

// explore makes a plan and its programs. Broken invariants in fusion or
// codegen become an error here and nowhere else.
func (d *Device) explore(seg *segment.Segment, opt fusion.Options) (e *entry, err error) {
	defer recoverBug("explore", &err)
	start := time.Now()
	plan, err := fusion.Explore(seg, d.caps, opt)
	if err != nil {
		return nil, err
	}
	if e, err = d.newEntry(plan, seg); err != nil {
		return nil, err
	}
	e.text = segmentText(seg)
	d.stats.explored.Add(1)
	background := opt.Stop != nil
	if background {
		d.stats.searches.Add(1)
	}
	d.onExplore(ExploreEvent{Ops: len(seg.Nodes), Kernels: len(plan.Steps), Plan: plan.Mode.String(),
		Background: background, Elapsed: time.Since(start)})
	return e, nil
}

// newEntry makes the programs of a plan and what else its runs need. The
// segment's dear results are settled.
func (d *Device) newEntry(plan *fusion.Plan, seg *segment.Segment) (*entry, error) {
	e := &entry{plan: plan}
	e.startClass(plan.Sizes)
	for i := range plan.Steps {
		p, text, err := d.program(plan.Steps[i].Kernel, 1)
		if err != nil {
			d.retire(e)
			return nil, err
		}
		e.progs, e.texts = append(e.progs, p), append(e.texts, text)
	}
	e.settleDear(seg)
	e.sets, e.setOf = leafSets(seg)
	e.memo.init(seg)
	return e, nil
}

var fusionMode = [...]fusion.Mode{FusionOn: fusion.Best, FusionGreedy: fusion.Greedy, FusionOff: fusion.Unfused}
