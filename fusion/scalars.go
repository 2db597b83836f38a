package fusion

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// worthGuarding: merging scalars must remove at least one in so many of a kernel's instructions;
// otherwise the plan is not tied to their being equal.
const worthGuarding = 10

// mergeScalars gives scalars of equal bits one slot where the kernel then shares work: a function
// that is written out twice in public ops has its constants in two sets of slots. Each merge
// becomes a guard, so only merges that help are kept. Other scalars may still change freely.
func (x *explorer) mergeScalars(k *codegen.Kernel, slots []int32) (*codegen.Kernel, []int32, []Guard) {
	same := make([]int, len(slots)) // first kernel scalar of the same bits
	any := false
	for i, s := range slots {
		same[i] = i
		for j := range i {
			if x.seg.Scalars[slots[j]] == x.seg.Scalars[s] {
				same[i], any = same[j], true
				break
			}
		}
	}
	if !any {
		return k, slots, nil
	}
	apart, merged := x.size(k), x.size(withScalars(k, same))
	if (apart-merged)*worthGuarding < apart || merged == apart {
		return k, slots, nil
	}
	for i := range same {
		if x.over() {
			return k, slots, nil
		}
		if alone := release(same, i); x.size(withScalars(k, alone)) == merged {
			same = alone
		}
	}
	var guards []Guard
	keep := make([]int, len(slots)) // new number of each kernel scalar
	var left []int32
	var dts []ir.DType
	for i, s := range same {
		if s != i {
			keep[i] = keep[s]
			guards = append(guards, Guard{Scalar: true, A: int(slots[s]), B: int(slots[i])})
			continue
		}
		keep[i] = len(left)
		left = append(left, slots[i])
		dts = append(dts, k.Scalars[i])
	}
	k = withScalars(k, keep)
	k.Scalars = dts
	return k, left, guards
}

// withScalars is a copy of k with scalar slot i renumbered to[i].
func withScalars(k *codegen.Kernel, to []int) *codegen.Kernel {
	n := *k
	n.Body = slices.Clone(k.Body)
	for i := range n.Body {
		if n.Body[i].Op == ir.Scalar {
			n.Body[i].Imm = uint64(to[n.Body[i].Imm])
		}
	}
	return &n
}

// release takes scalar i out of its set of equal scalars.
func release(same []int, i int) []int {
	out := slices.Clone(same)
	out[i] = i
	if same[i] != i {
		return out
	}
	first := -1 // i was the set's first: the next one becomes the first
	for j := i + 1; j < len(same); j++ {
		if same[j] == i {
			if first < 0 {
				first = j
			}
			out[j] = first
		}
	}
	return out
}
