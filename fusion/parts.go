package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/internal/testhook"
)

// The time of a search grows faster than the number of ops, because the search compares groups
// with each other. So a long segment, such as a step of training, is searched part by part, in the
// order of [flow]. A later part may need a value of an earlier part. Then either the earlier part
// writes it, or it is so little work that the later part computes it again; [flow.keep] decides.
// Groups of different parts never join. This bounds how often a value is computed. A part needs
// nothing of later parts, so the plan is the plans of the parts, one after another.

// partSize is the length, in nodes, of the longest segment that is searched as a whole, and of the
// longest part. A part has at least half as many nodes.
const partSize = 256

func (o *Options) partSize() int {
	if o.within > 0 {
		return o.within
	}
	return testhook.Part(partSize)
}

// byParts explores a long segment part by part.
func (x *explorer) byParts() (*Plan, error) {
	f := x.newFlow()
	x.partOf = f.parts()
	f.countUses()
	var sorted []*group
	exhausted := false
	for from := 0; from < len(f.order) && !x.late(); from += len(x.part) {
		x.part = f.partAt(from)
		f.keep()
		x.groups = nil
		x.eachRootOf(x.part)
		x.writeRepeated()
		x.splitOver()
		if err := x.explorePart(); err != nil {
			return nil, err
		}
		exhausted = exhausted || x.exhausted
		sorted = append(sorted, x.groups...)
	}
	if x.groups = sorted; exhausted {
		x.opt.Mode = Greedy
	}
	return x.written()
}

// explorePart finds the groups of the part and puts them in order. Effort bounds each part, so the
// time for all parts grows with their number.
func (x *explorer) explorePart() error {
	if x.opt.Mode == Best {
		groups, stored, sizes := x.groups, slices.Clone(x.stored), len(x.sizes)
		x.spent, x.exhausted = 0, false
		x.search = x.opt.Effort > 0 || x.opt.Stop != nil
		x.improve()
		x.search = false
		switch {
		case x.stopped:
			return ErrStopped
		case !x.exhausted:
			return x.sort()
		}
		x.groups, x.stored, x.sizes = groups, stored, x.sizes[:sizes]
	}
	x.mergeOnce()
	x.dropUnread()
	return x.sort()
}

// onePart reports that two groups are of the same part.
func (x *explorer) onePart(a, b *group) bool {
	if x.partOf == nil {
		return true
	}
	return x.partOf[x.seg.Tensors[a.roots[0].tensor].Def] == x.partOf[x.seg.Tensors[b.roots[0].tensor].Def]
}
