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
	// Greedy makes one cheap pass, for streams whose segments never repeat.
	Greedy
	// Unfused gives every op its own kernel, as an engine without fusion
	// would; views are views in this mode too.
	Unfused
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Best:
		return "best"
	case Greedy:
		return "greedy"
	}
	return "unfused"
}

// Options are what Explore may be told. The zero value is the usual choice.
type Options struct {
	Mode Mode
	// Effort bounds the search for the best plan, in about the number of
	// instructions looked at; 0 is no bound. Where it does not suffice, which
	// depends on the segment only and not on the time that passes, the plan is
	// the greedy one: Plan.Mode tells.
	Effort int
	// Stop, where not nil, is asked now and then; true ends the search for the
	// best plan with ErrStopped.
	Stop func() bool

	within int // nodes of a part, in tests; 0: partSize
}

// ErrStopped is the end of a search that Options.Stop asked for.
var ErrStopped = errors.New("fusion: the search was stopped")

// Explore groups the ops of a segment into kernels for a device. The plan
// serves every segment of the same relative form that its guards admit. Equal
// segments, caps and options give equal plans. A segment with an empty tensor
// gets one kernel per op whatever the mode: a kernel over an empty domain would
// not compute the results of other shapes that ride along. An error means that the segment
// is malformed or holds an op the engine cannot express.
func Explore(seg *segment.Segment, caps *runtime.Caps, opt Options) (*Plan, error) {
	return newExplorer(seg, caps, opt).explore()
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

// best searches for the best plan; where that takes too much effort the plan is
// the greedy one.
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
	case !x.weary:
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

// improve is the search for the best groups.
func (x *explorer) improve() {
	x.mergeAll()
	x.dropUnread()
	x.writeShared()
}

// spend counts instructions that the search looked at.
func (x *explorer) spend(n int) {
	if !x.search {
		return
	}
	x.spent += n
	if x.opt.Effort > 0 && x.spent > x.opt.Effort {
		x.weary = true
	}
	if x.opt.Stop != nil && x.opt.Stop() {
		x.stopped = true
	}
}

// over reports that nothing comes of the search any more.
func (x *explorer) over() bool { return x.weary || x.stopped }

// explorer holds one exploration: what is fixed (the graph, the device) and
// the groups as they are so far.
type explorer struct {
	*graph
	caps     *runtime.Caps
	opt      Options
	model    model
	weights  weights
	stored   []bool // tensors that some group writes
	wanted   []bool // those of them that must be in memory afterwards
	groups   []*group
	verdicts map[pair]verdict
	scratch  body
	part     []int32 // the nodes that are looked at
	partOf   []int32 // each node's; nil: the segment is one
	writer   []int
	writes   []write
	touch    [2][][]int // see nearPairs
	sizes    []Size     // at which the choices made so far would be made again

	values         int  // that were put into bodies, over all of them
	search         bool // the search for the best plan is on
	spent          int
	weary, stopped bool
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
	}
	x.part = make([]int32, len(seg.Nodes))
	for n := range x.part {
		x.part[n] = int32(n)
	}
	return x
}

// begin finds what must be written, in memory afterwards or for who reads it.
func (x *explorer) begin() {
	x.chooseRoots(x.stored)
	x.wanted = slices.Clone(x.stored)
	for t := range x.wanted {
		if x.isDear(int32(t)) && x.seg.Tensors[t].Life != segment.LifeWrite {
			x.wanted[t] = false // unless a kernel reads it
		}
	}
	for _, b := range x.alias {
		if b >= 0 {
			x.wanted[b] = true
		}
	}
}

// eachRootOf starts from one group per tensor of these nodes that must be written.
func (x *explorer) eachRootOf(nodes []int32) {
	for _, n := range nodes {
		if t := x.seg.Out[n]; x.stored[t] {
			x.groups = append(x.groups, x.groupsOf(t)...)
		}
	}
}

// eachAlone starts from one group per op that is not a view.
func (x *explorer) eachAlone() {
	for t := range x.stored {
		x.stored[t] = x.needed[t] && x.node(int32(t)) != nil && !x.isView(int32(t))
	}
	x.chooseRoots(x.stored)
	for _, t := range x.roots {
		x.groups = append(x.groups, x.groupOf(t))
	}
}

// plan writes down the groups as steps.
func (x *explorer) plan() (*Plan, error) {
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

// written is the plan of the groups, which are in order.
func (x *explorer) written() (*Plan, error) {
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
	p.Score = x.saved()
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

// saved is the predicted gain over one kernel per op.
func (x *explorer) saved() float64 {
	if x.opt.Mode == Unfused {
		return 0
	}
	u := newExplorer(x.seg, x.caps, Options{Mode: Unfused})
	u.eachAlone()
	apart, now := u.total(), x.total()
	if math.Abs(apart-now) < 1e-9*apart { // the same, summed in another order
		return 0
	}
	return apart - now
}

// refusals says of pairs of steps that share data why they are two.
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
		v := x.join(a, b)
		if v.group != nil {
			v.why = reasonBetween
		}
		rs = append(rs, Refusal{A: p[0], B: p[1], Reason: v.why, Bytes: x.common(a, b)})
	}
	return rs
}

// common is the traffic two groups have in common: what one writes and the
// other reads, and what both read, once.
func (x *explorer) common(a, b *group) int64 {
	var n int64
	for _, t := range x.tensors(a) {
		if slices.Contains(x.tensors(b), t) && !(a.writes(t) && b.writes(t)) {
			n += min(x.traffic(a, t), x.traffic(b, t)) * x.elemSize(x.seg.Tensors[t].DT)
		}
	}
	return n
}

// eachTensor visits what a group reads and writes.
func (x *explorer) eachTensor(g *group, visit func(t int32)) {
	for _, t := range x.price(g).reads {
		visit(t)
	}
	for _, r := range g.roots {
		visit(r.tensor)
	}
}

// tensors lists what a group reads and writes.
func (x *explorer) tensors(g *group) []int32 {
	ts := slices.Clone(x.price(g).reads)
	for _, r := range g.roots {
		ts = append(ts, r.tensor)
	}
	return ts
}

// traffic is how many elements of a tensor a group moves at most.
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
