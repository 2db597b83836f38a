package plans

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/device"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Known is a plan with what this device needs to run it.
type Known struct {
	on    *device.Base
	Plan  *fusion.Plan
	Progs []runtime.Program // one per step
	Texts []string          // of their kernels
	Memo  Memo              // layouts of the sizes it ran with lately
	ran   *profile.List     // what its runs took, for a report; nil where nobody wants one

	// Results that are not written, grouped by what they start from.
	Sets  [][]int32
	SetOf []int32

	Found   atomic.Bool // a segment came back to it
	Checked atomic.Bool // with Options.Check: compared with the op-by-op form

	// Dear results that the plan left unwritten and that were computed again
	// later; nil where there are none. Such a plan is not used any more: the
	// next one writes them.
	Replayed atomic.Pointer[[]int32]

	improving                       // the search for a better one
	class                           // the sizes it is best at
	Next      atomic.Pointer[Known] // the better one, when it was found

	lines []string // where the nodes were first recorded, as far as known
	text  string   // the segment it was explored on, for Explain
	wants []int    // dear results that it writes because they were asked for

	unbuilt error // why the plan that this one stands for could not be built
}

// leaf is where the trie keeps the plans of a segment.
type leaf = segment.Leaf[queue.Key, *Known]

// GreedyAfter is how many explorations that nobody profits from make a device
// stop searching for the best plan of segments it has not seen before: its
// programs never repeat, so a cheap plan is better. An exploration is of use
// when its plan is found for the first time. Known plans that go on being found
// prove nothing, and streams come and go: so neither hits nor explorations are
// counted by stream. A cheap plan that is found again is worth a search after
// all.
const GreedyAfter = 32

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

// known is the first plan whose guards admit a segment and whose class it is in,
// or the first whose guards admit it. The segment learns which dear results
// plans before it should have written; they are listed.
func known(at *leaf, seg *segment.Segment) (e *Known, wants []int) {
	n := 0 // wants before e
	for _, c := range at.Plans() {
		if again := c.Replayed.Load(); again != nil {
			for _, id := range *again {
				wants = with(wants, int(id))
			}
		} else if c.Plan.Check(seg) && c.writes(seg, wants) {
			if c.Suits(seg) {
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
		for _, id := range e.wants { // plans they were learned from may be gone; one in its place is to write them too
			wants = with(wants, id)
		}
	}
	want(seg, wants)
	return e, wants
}

// Explore makes a plan and its programs. Broken invariants in fusion or
// codegen become an error here and nowhere else.
func (p *Store) Explore(seg *segment.Segment, opt fusion.Options) (e *Known, err error) {
	defer operror.Recover("explore", &err)
	start := time.Now()
	plan, err := fusion.Explore(seg, p.Caps, opt)
	if err != nil {
		return nil, err
	}
	if e, err = p.newEntry(plan, seg); err != nil {
		return nil, err
	}
	e.text = segmentText(seg)
	p.Counts.Explored.Add(1)
	background := opt.Stop != nil
	if background {
		p.Counts.Searches.Add(1)
	}
	p.OnExplore(device.ExploreEvent{Ops: len(seg.Nodes), Kernels: len(plan.Steps), Plan: plan.Mode.String(),
		Background: background, Elapsed: time.Since(start)})
	return e, nil
}

// newEntry makes the programs of a plan and what else its runs need. The
// segment's dear results are settled.
func (p *Store) newEntry(plan *fusion.Plan, seg *segment.Segment) (*Known, error) {
	e := &Known{on: p.Base, Plan: plan}
	if p.Watched() {
		e.ran = new(profile.List)
	}
	e.startClass(plan.Sizes)
	for i := range plan.Steps {
		prog, text, err := p.Program(plan.Steps[i].Kernel, 1)
		if err != nil {
			p.Retire(e.Progs)
			return nil, &buildError{int32(plan.Steps[i].Nodes[0]), err}
		}
		e.Progs, e.Texts = append(e.Progs, prog), append(e.Texts, text)
	}
	e.SettleDear(seg)
	e.Sets, e.SetOf = leafSets(seg)
	e.Memo.init(seg)
	return e, nil
}

// buildError is a kernel of a plan that could not be built.
type buildError struct {
	node int32 // its first
	err  error
}

func (e *buildError) Error() string { return e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }

// unbuilt counts a plan that could not be made, or built, and tells of it: with the op that the
// kernel begins with, and its line, or those of the segment.
func (p *Store) unbuilt(seg *segment.Segment, lineOf func(node int32) string, err error) (why error, line string) {
	p.Counts.Fallbacks.Add(1)
	p.Counts.Unbuilt.Add(1)
	node := int32(0)
	var at *buildError
	if errors.As(err, &at) {
		node = at.node
	}
	line = lineOf(node)
	n := &seg.Nodes[node]
	why = &operror.Error{Op: n.Op.String(), Shapes: []ir.Shape{n.Shape}, Caller: line, Err: err}
	p.OnError(why)
	return why, line
}

// List is what is known of its runs, nil for no plan and where nobody wants a report.
func (e *Known) List() *profile.List {
	if e == nil {
		return nil
	}
	return e.ran
}

// LineOf is where a node was recorded, as far as anybody knows: by this queue,
// or when its plan was made.
func (e *Known) LineOf(own []string, node int32) string {
	if int(node) < len(own) && own[node] != "" {
		return own[node]
	}
	if e != nil && int(node) < len(e.lines) {
		return e.lines[node]
	}
	return ""
}
