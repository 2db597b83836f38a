package fusion

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// splitOver splits groups that exceed a device limit: it writes a value from the middle of the
// group to memory. A group of one op cannot be split.
func (x *explorer) splitOver() {
	for i := 0; i < len(x.groups) && !x.late(); {
		g := x.groups[i]
		if x.overLimit(g) == "" {
			i++
			continue
		}
		if t, ok := x.cutPoint(g); ok {
			x.write(t)
			i = 0 // reading t instead of computing it may give a group one operand more
		} else {
			i++
		}
	}
}

// cutPoint picks the value to write: the one whose own group is the largest within the limits, and
// the latest of several. If no group is within the limits, it picks the one with the smallest
// group. It reports false for a group of one op.
func (x *explorer) cutPoint(g *group) (int32, bool) {
	best, most := int32(-1), -1
	small, least := int32(-1), math.MaxInt
	over := make(map[int32]bool)
	for _, t := range x.inner(g) {
		if x.late() {
			return 0, false
		}
		x.eachArg(x.seg.Tensors[t].Def, func(a int32) { over[t] = over[t] || over[x.base(a)] })
		if over[t] {
			continue // one of its operands is over the limits
		}
		part := x.groupOf(t)
		w := x.price(part).weight
		if over[t] = x.overLimit(part) != ""; w >= most && !over[t] {
			best, most = t, w
		}
		if w < least {
			small, least = t, w
		}
	}
	if best < 0 {
		best = small
	}
	return best, best >= 0
}

// inner lists, in program order, the values that a group holds only in registers and that could be
// written. Broadcast constants are not worth memory.
func (x *explorer) inner(g *group) []int32 {
	var ts []int32
	nodes := x.price(g).nodes
	if x.price(g).err == errTooLarge {
		nodes = x.madeBy(g) // price did not look at all nodes
	}
	for _, n := range x.part {
		t := x.seg.Out[n]
		if nodes.has(n) && !x.stored[t] && !x.isView(t) && x.node(t).Op != ir.Full {
			ts = append(ts, t)
		}
	}
	return ts
}

// madeBy is the set of nodes that a group computes its roots from.
func (x *explorer) madeBy(g *group) nodeSet {
	nodes := newNodeSet(len(x.seg.Nodes))
	var visit func(n int32)
	visit = func(n int32) {
		if nodes.has(n) {
			return
		}
		nodes.add(n)
		x.eachArg(n, func(a int32) {
			if d := x.seg.Tensors[a].Def; d >= 0 && !x.stored[a] {
				visit(d)
			}
		})
	}
	for _, r := range g.roots {
		visit(x.seg.Tensors[r.tensor].Def)
	}
	return nodes
}

// write makes groups that write t to memory. Groups that computed t now read it. The other groups
// stay as they are, with their prices.
func (x *explorer) write(t int32) {
	groups := make([]*group, 0, len(x.groups)+1)
	for _, g := range x.groups {
		if x.price(g).nodes.has(x.seg.Tensors[t].Def) {
			n := *g
			n.cost = nil
			g = &n
		}
		groups = append(groups, g)
	}
	x.stored[t] = true
	x.groups = append(groups, x.groupsOf(t)...)
}

// worthWriting is the smallest number of lowered instructions behind a value for which writing it
// is considered. With fewer instructions, recomputing is always faster.
const worthWriting = 8

// writeShared writes values to memory where that is predicted to be faster. Candidates are values
// that several groups compute, or that one group computes at several maps, in several phases, or at
// more points than the value has elements.
//
// It tries late values first: if a value is in memory, the values that it is made from need not be.
func (x *explorer) writeShared() {
	for _, n := range slices.Backward(x.part) {
		if x.over() {
			break
		}
		if t := x.seg.Out[n]; x.candidate(t) {
			x.tryWriting(t)
		} else if x.writable(t) {
			x.noteUnrepeated(t)
		}
	}
}

// dropUnread stops writing values that no other group reads any more, because the groups that would
// have read them now compute them in registers.
func (x *explorer) dropUnread() {
	for i := 0; i < len(x.groups); i++ {
		for _, r := range x.groups[i].roots {
			if x.wanted[r.tensor] || len(x.groups[i].roots) == 1 || r.at.pieced() || x.readElsewhere(r.tensor, i) {
				continue
			}
			n := *x.groups[i]
			n.cost = nil
			n.roots = slices.DeleteFunc(slices.Clone(n.roots), func(o root) bool { return o == r })
			x.groups = slices.Clone(x.groups)
			x.groups[i] = &n
			x.stored[r.tensor] = false
		}
	}
}

func (x *explorer) readElsewhere(t int32, i int) bool {
	for j, g := range x.groups {
		if j != i && slices.Contains(x.price(g).reads, t) {
			return true
		}
	}
	return false
}

// times is how often a group computes t at one index map: once per row if t has at most one element
// per row, else once per point.
func (x *explorer) times(g *group, t int32) int64 {
	points := x.maps.elems(g.domain)
	if rows := points / max(1, x.rowLength(g)); x.elems(t) <= rows {
		return rows
	}
	return points
}

// writable reports a value that is only in registers and may be worth memory.
func (x *explorer) writable(t int32) bool {
	return x.needed[t] && !x.stored[t] && !x.isView(t) && !x.isRowOp(t) && x.node(t) != nil && x.node(t).Op != ir.Full
}

func (x *explorer) candidate(t int32) bool {
	if !x.writable(t) {
		return false
	}
	users, repeated, inside, apart := 0, false, false, false
	def := x.seg.Tensors[t].Def
	for _, g := range x.groups {
		if c := x.price(g); c.nodes.has(def) {
			users++
			inside = inside || c.inside.has(def)
			apart = apart || c.apart
			repeated = repeated || c.anew || c.again.has(def) || !g.contracts() && x.times(g, t) > x.elems(t)
		}
	}
	if users <= 1 && !repeated && !inside && !apart {
		return false
	}
	// A value made from rows that are not in memory may have no group of its own.
	alone := x.price(x.groupOf(t))
	// Writing a contraction's operand where it is made costs as much as writing the value that it
	// is made from, and it is then computed once.
	return alone.err == nil && (inside || apart || alone.weight >= worthWriting)
}

// countOver counts the groups that exceed a device limit. They are groups of one op.
func (x *explorer) countOver() (n int) {
	for _, g := range x.groups {
		if x.overLimit(g) != "" {
			n++
		}
	}
	return n
}

// tryWriting gives t a group of its own and joins groups again. It keeps the result if the total
// time is predicted to be lower.
func (x *explorer) tryWriting(t int32) {
	before, groups, stored, over := x.total(), x.groups, slices.Clone(x.stored), x.countOver()
	sizes, users, own := slices.Clone(x.sizes), x.usersOf(t), x.alone(t).seconds-x.model.launch
	x.write(t)
	x.mergeAll()
	x.dropUnread()
	_, ok := x.order()
	ok = ok && x.countOver() <= over // a group that reads t instead of computing it may have one operand more
	after, more := x.total(), len(x.groups)-len(groups)
	written := x.stored[t]
	if !ok || after >= before {
		x.stored, x.groups = stored, groups
		if !ok || written {
			x.sizes = sizes
		}
	}
	if ok && written { // otherwise t was joined with its readers again, and noteMerge has noted that
		x.noteWriting(t, users, own, more, before, after)
	}
}
