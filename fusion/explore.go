package fusion

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Mode says how hard Explore tries.
type Mode uint8

const (
	// Best searches for the fastest plan the model can predict.
	Best Mode = iota
	// Greedy makes one cheap pass. It is for streams whose segments never repeat.
	Greedy
	// Unfused gives every op its own kernel, as an engine without fusion does. Views stay views.
	Unfused
)

// String is the mode's name: "best", "greedy" or "unfused".
func (m Mode) String() string {
	switch m {
	case Best:
		return "best"
	case Greedy:
		return "greedy"
	}
	return "unfused"
}

// Options control Explore. The zero value is the usual choice.
type Options struct {
	Mode Mode
	// Effort bounds the search for the best plan. Its unit is about one instruction looked at; 0 is
	// no bound. If the search needs more, the plan is the greedy one, and Plan.Mode says Greedy.
	// Whether that happens depends on the segment only, not on time.
	Effort int
	// Stop, if not nil, is called now and then. If it returns true, the search for the best plan
	// ends with ErrStopped.
	Stop func() bool

	// Waits says that a program waits for the plan. If making a greedy plan takes long beside running
	// the segment, the segment is planned in short parts. As with Effort, this depends on the segment
	// only.
	Waits bool

	within int  // nodes of a part, set by tests; 0: partSize
	looked *int // if not nil, values put into bodies and steps of maps are added to it, for tests
}

// ErrStopped is returned by Explore when Options.Stop ended the search.
var ErrStopped = errors.New("fusion: the search was stopped")

// Explore groups the ops of a segment into kernels for a device. The plan serves every segment of
// the same relative form that its guards admit. Equal segments, caps and options give equal plans.
// A segment with an empty tensor gets one kernel per op in every mode: a kernel over an empty
// domain would not compute the results of other shapes that were fused into it. Explore returns an
// error if the segment is malformed or has an op that the engine cannot express.
func Explore(seg *segment.Segment, caps *runtime.Caps, opt Options) (*Plan, error) {
	if opt.Waits && opt.Mode != Unfused {
		return exploreInTime(seg, caps, opt)
	}
	x := newExplorer(seg, caps, opt)
	defer x.count()
	return x.explore()
}

func (x *explorer) count() {
	if n := x.opt.looked; n != nil {
		*n += x.values + x.maps.made
	}
}

func (x *explorer) explore() (*Plan, error) {
	seg, opt := x.seg, x.opt
	if err := x.check(); err != nil {
		return nil, err
	}
	if opt.Mode == Unfused || x.empty() {
		x.eachAlone()
		return x.plan()
	}
	x.setPatience()
	x.begin()
	if len(seg.Nodes) > opt.partSize() {
		return x.byParts()
	}
	x.eachRootOf(x.part)
	if opt.Mode == Greedy {
		x.writeRepeated()
		x.splitOver()
		x.mergeOnce()
		x.dropUnread()
		return x.plan()
	}
	return x.best()
}

// best searches for the best plan. If the search takes too much effort, it returns the greedy plan.
func (x *explorer) best() (*Plan, error) {
	stored := slices.Clone(x.stored)
	x.splitOver()
	x.search = x.opt.Effort > 0 || x.opt.Stop != nil
	x.improve()
	p, err := x.plan()
	x.search = false
	switch {
	case x.stopped:
		return nil, ErrStopped
	case !x.exhausted:
		return p, err
	}
	x.groups, x.stored, x.opt.Mode, x.sizes = nil, stored, Greedy, nil
	x.eachRootOf(x.part)
	x.writeRepeated()
	x.splitOver()
	x.mergeOnce()
	x.dropUnread()
	return x.plan()
}

// improve searches for the best groups.
func (x *explorer) improve() {
	x.mergeAll()
	x.dropUnread()
	x.writeShared()
}

// spend counts instructions that the search looked at, and ends the search at its limits.
func (x *explorer) spend(n int) {
	if !x.search {
		return
	}
	x.spent += n
	if x.opt.Effort > 0 && x.spent > x.opt.Effort {
		x.exhausted = true
	}
	if x.opt.Stop != nil && x.opt.Stop() {
		x.stopped = true
	}
}

// over reports that the search has ended without a result.
func (x *explorer) over() bool { return x.exhausted || x.stopped }

// explorer holds one exploration: the fixed facts (the graph, the device) and the current groups.
type explorer struct {
	*graph
	caps     *runtime.Caps
	opt      Options
	model    model
	weights  weights
	stored   []bool // tensors that some group writes
	wanted   []bool // of the stored ones, those that must be in memory afterwards
	groups   []*group
	verdicts map[pair]verdict
	scratch  body
	part     []int32 // the nodes of the part that is being searched
	partOf   []int32 // the part of each node; nil: the segment is one part
	writer   []int
	writes   []write
	touch    [2][][]int       // see nearPairs
	sizes    []Size           // the sizes at which the same choices would be made again
	ofTensor map[int32]*group // see groupOf

	values             int  // number of values put into bodies, over all bodies
	limited            bool // planning ends with errLate if it takes long
	patience           int  // number of values after which that is so; 0: never
	search             bool // true while the search for the best plan runs
	spent              int
	exhausted, stopped bool
}

func newExplorer(seg *segment.Segment, caps *runtime.Caps, opt Options) *explorer {
	x := &explorer{
		graph:    newGraph(seg, newDimSet(seg), caps.Denormals),
		caps:     caps,
		opt:      opt,
		model:    newModel(caps),
		weights:  make(weights),
		stored:   make([]bool, len(seg.Tensors)),
		verdicts: make(map[pair]verdict),
		ofTensor: make(map[int32]*group),
	}
	x.part = make([]int32, len(seg.Nodes))
	for n := range x.part {
		x.part[n] = int32(n)
	}
	return x
}

// begin finds the tensors that must be written: for use after the segment, or for other kernels.
func (x *explorer) begin() {
	x.chooseRoots(x.stored)
	x.wanted = slices.Clone(x.stored)
	for t := range x.wanted {
		if x.isCostly(int32(t)) && x.seg.Tensors[t].Life != segment.LifeWrite {
			x.wanted[t] = false // written only if a kernel reads it
		}
	}
	for _, b := range x.alias {
		if b >= 0 {
			x.wanted[b] = true
		}
	}
}

// eachRootOf makes the first groups: one for each of these nodes' results that must be written (or
// one per piece of a concatenation).
func (x *explorer) eachRootOf(nodes []int32) {
	for _, n := range nodes {
		if t := x.seg.Out[n]; x.stored[t] {
			x.groups = append(x.groups, x.groupsOf(t)...)
		}
	}
}

// eachAlone makes one group per op that is not a view.
func (x *explorer) eachAlone() {
	for t := range x.stored {
		x.stored[t] = x.needed[t] && x.node(int32(t)) != nil && !x.isView(int32(t))
	}
	x.chooseRoots(x.stored)
	for _, t := range x.roots {
		x.groups = append(x.groups, x.groupOf(t))
	}
}

// plan puts the groups in order and turns them into steps.
func (x *explorer) plan() (*Plan, error) {
	if x.late() {
		return nil, errLate
	}
	if err := x.sort(); err != nil {
		return nil, err
	}
	return x.written()
}

// sort puts the groups in the order in which they run.
func (x *explorer) sort() error {
	order, ok := x.order()
	if !ok {
		return fmt.Errorf("fusion: groups depend on each other in a circle")
	}
	sorted := make([]*group, len(order))
	for i, j := range order {
		sorted[i] = x.groups[j]
	}
	x.groups = sorted
	return nil
}

// written is the plan of the groups, which must be in the order in which they run.
func (x *explorer) written() (*Plan, error) {
	if x.late() {
		return nil, errLate
	}
	p := &Plan{Mode: x.opt.Mode, Aliases: x.aliases(), Chains: x.chains()}
	p.addGuards(x.class.guards)
	for _, g := range x.groups {
		s, guards, err := x.step(g)
		if err != nil {
			return nil, err
		}
		p.Steps = append(p.Steps, s)
		p.addGuards(guards)
		p.addGuards(x.unitGuards(&s))
	}
	p.Refusals = x.refusals()
	if x.opt.Mode == Best {
		x.noteSlower()
		p.Sizes = x.sizes
	}
	if x.opt.Mode != Greedy {
		p.Score = x.saved()
	}
	p.uses = newUses(p)
	return p, nil
}

func (p *Plan) addGuards(gs []Guard) {
	for _, g := range gs {
		if !slices.Contains(p.Guards, g) {
			p.Guards = append(p.Guards, g)
		}
	}
}

// saved is the predicted time saved over one kernel per op, in seconds.
func (x *explorer) saved() float64 {
	if x.opt.Mode == Unfused {
		return 0
	}
	alike := *x.graph // the same facts; only what is written is chosen anew
	alike.roots, alike.alias = nil, slices.Repeat([]int32{-1}, len(x.alias))
	u := &explorer{graph: &alike, caps: x.caps, opt: Options{Mode: Unfused}, model: x.model, weights: x.weights, stored: make([]bool, len(x.stored)), ofTensor: make(map[int32]*group)}
	u.eachAlone()
	apart, now := u.total(), x.total()
	if math.Abs(apart-now) < 1e-9*apart { // equal: only the order of the sum differs
		return 0
	}
	return apart - now
}

// refusals lists, for pairs of steps that share data, why they are not one step. It makes no group
// for a greedy plan: a program waits for that one.
func (x *explorer) refusals() []Refusal {
	if x.opt.Mode == Unfused {
		return nil
	}
	var rs []Refusal
	for _, p := range x.nearPairs() {
		a, b := x.groups[p[0]], x.groups[p[1]]
		if !x.shared(a, b) {
			continue
		}
		if !x.onePart(a, b) {
			rs = append(rs, Refusal{A: p[0], B: p[1], Reason: reasonParts, Bytes: x.common(a, b)})
			continue
		}
		v, ok := x.verdicts[pair{a, b}]
		switch {
		case ok:
		case x.opt.Mode == Greedy:
			v.why = reasonQuick
		default:
			v = x.join(a, b)
		}
		if v.group != nil {
			v.why = reasonBetween
		}
		rs = append(rs, Refusal{A: p[0], B: p[1], Reason: v.why, Bytes: x.common(a, b)})
	}
	return rs
}

// common is the traffic, in bytes, that two groups share: tensors that one writes and the other
// reads, and tensors that both read. Each tensor counts once.
func (x *explorer) common(a, b *group) int64 {
	var n int64
	x.eachTensor(a, func(t int32) {
		if (slices.Contains(x.price(b).reads, t) || b.writes(t)) && !(a.writes(t) && b.writes(t)) {
			n += min(x.traffic(a, t), x.traffic(b, t)) * x.elemSize(x.seg.Tensors[t].DT)
		}
	})
	return n
}

// eachTensor visits the tensors that a group reads and writes.
func (x *explorer) eachTensor(g *group, visit func(t int32)) {
	for _, t := range x.price(g).reads {
		visit(t)
	}
	for _, r := range g.roots {
		visit(r.tensor)
	}
}

// traffic is the largest number of elements of t that a group moves.
func (x *explorer) traffic(g *group, t int32) int64 {
	n := int64(0)
	for _, p := range x.price(g).touched {
		if p.tensor == t {
			n += p.at.elems
		}
	}
	if n == 0 || n > x.memory(t) {
		return x.memory(t)
	}
	return n
}
