package planstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Known is a plan with all that this device needs to run it.
type Known struct {
	on    *device.Base
	Plan  *fusion.Plan
	Progs []runtime.Program // one per step
	Texts []string          // the text of each program's kernel
	Memo  Memo              // layouts for the sizes it ran with recently
	ran   *profile.List     // times of its runs, for a report; nil if the device is not watched

	// Virtual results (SetOf: index into Sets, or -1), grouped by what their recipes start from.
	Sets  [][]int32
	SetOf []int32

	// The same for recipes that start from lent results, too. They hold while these are in memory.
	Short   [][]int32
	ShortOf []int32

	Found   atomic.Bool // a segment used it again after it was made
	Checked atomic.Bool // with Options.Check: it was compared with the op-by-op results

	// Costly results that the plan did not write and that were recomputed later; nil for none. A
	// plan with a non-nil list is not used any more: the next plan writes these results.
	Replayed atomic.Pointer[[]int32]

	improving                       // the search for a better plan
	unasked                         // the results that it writes although nothing asked for them
	class                           // the sizes at which it is the best
	Next      atomic.Pointer[Known] // the better plan, once it is found

	lines []string // source lines at which the nodes were first recorded, where known
	text  string   // the segment on which it was explored, for Explain
	wants []int    // costly results that it writes because they were needed before

	unbuilt error // why the plan that this one replaces could not be built
}

// leaf is the node at which the trie keeps the plans of a segment.
type leaf = segment.Leaf[queue.Key, *Known]

// GreedyAfter is the number of wasted explorations after which a device no longer searches for the
// best plan of new segments. Then the program seems never to repeat itself, so a cheap plan is
// better. An exploration stops counting as wasted when its plan is found for the first time. Hits
// of older plans prove nothing, and streams are often short-lived, so neither hits nor
// explorations are counted per stream. A cheap plan that is found again does get a search.
const GreedyAfter = 32

// SearchAfter is the number of wasted explorations after which a search in the background waits
// until its segment comes again. A program that unrolls its loops has a new segment for each
// length. A search for the best plan of each takes several times as long as the greedy plan, on a
// processor that the next segments need.
const SearchAfter = 2

// hasEmpty reports a segment with a tensor without elements. Such segments need plans of their
// own: if the product of sizes is 0, groups of dims look equal that are not.
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

// known returns the first plan whose guards admit the segment and whose class contains it, or
// else the first whose guards admit it. It marks the costly results that earlier plans should
// have written as written, and lists them in wants.
func known(at *leaf, seg *segment.Segment) (e *Known, wants []int) {
	n := 0 // the number of wants before e
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
		for _, id := range e.wants { // the plans that listed these may be gone; a plan that replaces e must write them too
			wants = with(wants, id)
		}
	}
	want(seg, wants)
	return e, wants
}

// Explore makes a plan and its programs. Only here do broken invariants of fusion and codegen
// become errors.
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

// newEntry makes the programs of a plan and the other data for its runs. It settles the segment's
// costly results.
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
	e.SettleCostly(seg)
	e.Sets, e.SetOf = leafSets(seg, false)
	e.Short, e.ShortOf = shortSets(seg, e.Sets, e.SetOf)
	e.Memo.init(seg)
	return e, nil
}

// buildError is the error of a plan with a kernel that could not be built.
type buildError struct {
	node int32 // the first node of the kernel
	err  error
}

func (e *buildError) Error() string { return e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }

// unbuilt counts a plan that could not be made or built, and reports it to the hooks. The error
// names the first operation of the failed kernel, or of the segment, and its source line.
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

// List returns the times of the plan's runs; nil without a plan or if the device is not watched.
func (e *Known) List() *profile.List {
	if e == nil {
		return nil
	}
	return e.ran
}

// LineOf returns the source line at which a node was recorded, as known to the queue (own) or else
// from when the plan was made; "" if unknown.
func (e *Known) LineOf(own []string, node int32) string {
	if int(node) < len(own) && own[node] != "" {
		return own[node]
	}
	if e != nil && int(node) < len(e.lines) {
		return e.lines[node]
	}
	return ""
}
