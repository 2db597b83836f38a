package fusion

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/segment"
)

// Reasons why two groups are not one kernel.
const (
	reasonShapes      = "no broadcast or view relates their shapes"
	reasonChance      = "their shapes are equal by chance only"
	reasonPoints      = "one needs what the other computes at other points"
	reasonCover       = "a result would not be written exactly once per element"
	reasonRows        = "one needs what the other makes of whole rows, at other points than its own rows"
	reasonAxes        = "their rows lie along different axes"
	reasonFewRows     = "a sum over everything rides along with many long rows only"
	reasonContraction = "a contraction shares its kernel with nothing else that works on rows"
	reasonScatter     = "a scatter writes nothing but its result, which is in memory before anything is made of it"
	reasonInside      = "a contraction writes only what is made of its result, one element for each"
	reasonLookup      = "one looks up by index what the other computes"
	reasonTooLarge    = "far more operands or instructions than the device takes"
	reasonGuarded     = "a result smaller than the domain but not one element per row"
	reasonBetween     = "a third kernel must run between them"
	reasonSlower      = "predicted to be slower together"
	reasonQuick       = "not compared, as the plan was made quickly"
	reasonParts       = "they are of different parts of a long segment"
	reasonAlone       = "they share no data and the launch saved is small beside their work"
)

// errLookup: the index cannot be followed down to a tensor in memory.
var errLookup = errors.New("an operand that is read by index must be in memory")

// errTooLarge: the group is so large that its values were not all looked at.
var errTooLarge = errors.New(reasonTooLarge)

var errOtherRows = errors.New("its rows differ from the kernel's")

// rule is one check that a new group must pass. It returns the reason why the group is refused, or
// "".
type rule func(x *explorer, g *group) string

// rules are the checks for every kind of group. Device limits come last, because they are the least
// interesting reason.
var rules = []rule{
	func(x *explorer, g *group) string {
		switch err := x.price(g).err; {
		case err == errLookup:
			return reasonLookup
		case err == errTooLarge:
			return x.overLimit(g)
		case err != nil:
			return reasonRows
		}
		return ""
	},
	func(x *explorer, g *group) string {
		if g.over < 0 {
			return ""
		}
		for _, r := range g.roots {
			switch each := x.eachRow(g, r.at); {
			case r.total:
			case g.contracts() && (!each || x.price(g).loose):
				return reasonInside
			case !each && !x.maps.whole(r.at).bijective():
				return reasonGuarded
			}
		}
		return ""
	},
	(*explorer).overLimit,
}

// overLimit names the device limit that a group exceeds, "" if none.
func (x *explorer) overLimit(g *group) string {
	c := x.price(g)
	switch caps := x.caps; {
	case c.err == errTooLarge:
		return reasonTooLarge
	case c.over != "":
		return c.over
	case caps.MaxBody > 0 && c.weight > caps.MaxBody:
		if n := x.loweredSize(g); n > caps.MaxBody {
			return fmt.Sprintf("%d instructions, the device takes %d", n, caps.MaxBody)
		}
	}
	return ""
}

// legal applies every rule. It returns the first reason against the group, "" if there is none.
func (x *explorer) legal(g *group) string {
	for _, r := range rules {
		if why := r(x, g); why != "" {
			return why
		}
	}
	return ""
}

// between reports that a third group depends on one of groups i and j, and the other depends on it.
// Then i and j cannot be one kernel, because the third would have to run in the middle of it.
func between(deps [][]int, i, j int) bool {
	return reaches(deps, i, j) || reaches(deps, j, i)
}

// reaches reports that group from depends on group to through another group.
func reaches(deps [][]int, from, to int) bool {
	seen := make([]bool, len(deps))
	var visit func(i int) bool
	visit = func(i int) bool {
		for _, d := range deps[i] {
			if d == to {
				if i != from {
					return true
				}
				continue
			}
			if !seen[d] {
				seen[d] = true
				if visit(d) {
					return true
				}
			}
		}
		return false
	}
	return visit(from)
}

// write is a group that writes a tensor. next is the place plus one, in explorer.writes, of another
// group that writes a piece of the same tensor; 0 if there is none.
type write struct{ group, next int }

// dependencies lists, for each group, the groups whose results it reads, ascending.
func (x *explorer) dependencies() [][]int {
	writer := grown(&x.writer, len(x.seg.Tensors)) // place in x.writes plus one
	x.writes = x.writes[:0]
	for i, g := range x.groups {
		for _, r := range g.roots {
			x.writes = append(x.writes, write{group: i, next: writer[r.tensor]})
			writer[r.tensor] = len(x.writes)
		}
	}
	deps := make([][]int, len(x.groups))
	for i, g := range x.groups {
		for _, t := range x.price(g).reads {
			for at := writer[t]; at > 0; at = x.writes[at-1].next {
				if w := x.writes[at-1].group; w != i && !slices.Contains(deps[i], w) {
					deps[i] = append(deps[i], w)
				}
			}
		}
		slices.Sort(deps[i])
	}
	for _, g := range x.groups {
		for _, r := range g.roots {
			writer[r.tensor] = 0
		}
	}
	return deps
}

// order is a topological order of the groups. Among the groups that are ready, the one that writes
// the lowest tensor comes first, but a group that should wait for readers of its operand comes
// after the others. It reports false if the groups depend on each other in a circle.
func (x *explorer) order() ([]int, bool) {
	deps := x.dependencies()
	readers := x.readers(deps)
	done := make([]bool, len(x.groups))
	waits := func(on []int) bool { return slices.ContainsFunc(on, func(d int) bool { return !done[d] }) }
	var order []int
	for len(order) < len(x.groups) {
		next, late := -1, false
		for i := range x.groups {
			if done[i] || waits(deps[i]) {
				continue
			}
			l := waits(readers[i])
			if next < 0 || late && !l || late == l && x.groups[i].roots[0].tensor < x.groups[next].roots[0].tensor {
				next, late = i, l
			}
		}
		if next < 0 {
			return nil, false
		}
		done[next] = true
		order = append(order, next)
	}
	return order, true
}

// readers lists, for each group that may overwrite an operand that ends with the segment (as an
// update of a weight does), the other groups that read the operand. The group can overwrite it only
// if it runs after them.
func (x *explorer) readers(deps [][]int) [][]int {
	by := map[int32][]int{}
	for i, g := range x.groups {
		for _, t := range x.price(g).reads {
			if x.seg.Tensors[t].Life == segment.LifeInputDying {
				by[t] = append(by[t], i)
			}
		}
	}
	list := make([][]int, len(x.groups))
	for i, g := range x.groups {
		for _, t := range x.price(g).reads {
			if len(by[t]) < 2 || !x.overwrites(g, t) {
				continue
			}
			for _, j := range by[t] {
				if j != i && !slices.Contains(deps[j], i) && !reaches(deps, j, i) {
					list[i] = append(list[i], j)
				}
			}
		}
	}
	return list
}

// overwrites reports a group that may write a result in the memory of an operand: both are accessed
// at the same element.
func (x *explorer) overwrites(g *group, operand int32) bool {
	for _, p := range x.price(g).touched {
		if p.tensor == operand && slices.ContainsFunc(g.roots, func(r root) bool { return r.at == p.at && x.succeeds(r.tensor, operand) }) {
			return true
		}
	}
	return false
}

// succeeds reports that result t may take over the memory of an operand: same dtype and shape.
func (x *explorer) succeeds(t, operand int32) bool {
	return x.seg.Tensors[t].DT == x.seg.Tensors[operand].DT && x.class.of[t] == x.class.of[operand]
}
