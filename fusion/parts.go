package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/internal/force"
)

// A search takes longer than in proportion to the ops: it compares groups with each
// other. So a segment longer than any eager stretch of a stream, such as a step of
// training, is searched part by part, in the order of [flow]. What later parts read of a
// part is either written by it or so little work that they do it again, as [flow.keep]
// decides, and groups of different parts never join. That bounds how often anything is
// computed; and as a part needs nothing of later ones, the plan is those of its parts in
// a row.

// partSize is the length, in nodes, of a segment that is searched as a whole, and of a part
// at most; they are at least half as long.
const partSize = 256

func (o *Options) partSize() int {
	if o.within > 0 {
		return o.within
	}
	return force.Part(partSize)
}

// byParts explores a long segment.
func (x *explorer) byParts() (*Plan, error) {
	f := x.newFlow()
	x.partOf = f.parts()
	f.countUses()
	var sorted []*group
	weary := false
	for from := 0; from < len(f.order); from += len(x.part) {
		x.part = f.partAt(from)
		f.keep()
		x.groups = nil
		x.eachRootOf(x.part)
		x.writeRepeated()
		x.splitOver()
		if err := x.explorePart(); err != nil {
			return nil, err
		}
		weary = weary || x.weary
		sorted = append(sorted, x.groups...)
	}
	if x.groups = sorted; weary {
		x.opt.Mode = Greedy
	}
	return x.written()
}

// explorePart finds the groups of the part and puts them in order. Effort is of each
// part, so that the time for all grows with their number.
func (x *explorer) explorePart() error {
	if x.opt.Mode == Best {
		groups, stored, sizes := x.groups, slices.Clone(x.stored), len(x.sizes)
		x.spent, x.weary = 0, false
		x.search = x.opt.Effort > 0 || x.opt.Stop != nil
		x.improve()
		x.search = false
		switch {
		case x.stopped:
			return ErrStopped
		case !x.weary:
			return x.sort()
		}
		x.groups, x.stored, x.sizes = groups, stored, x.sizes[:sizes]
	}
	x.mergeOnce()
	x.dropUnread()
	return x.sort()
}

// onePart reports groups of one part.
func (x *explorer) onePart(a, b *group) bool {
	if x.partOf == nil {
		return true
	}
	return x.partOf[x.seg.Tensors[a.roots[0].tensor].Def] == x.partOf[x.seg.Tensors[b.roots[0].tensor].Def]
}
