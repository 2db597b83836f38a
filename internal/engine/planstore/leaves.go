package planstore

import (
	"slices"

	"github.com/millrace-go/millrace/segment"
)

// leafSets groups the results of a segment that have recipes by their leaves, which are operands of
// the segment and results written for good, and with lent also lent results. class[id] is an index
// into sets, -1 for other tensors.
func leafSets(seg *segment.Segment, lent bool) (sets [][]int32, class []int32) {
	isLeaf := func(id int32) bool {
		t := &seg.Tensors[id]
		return IsLeaf(t) || lent && t.Lent
	}
	made := func(id int32) bool { return madeAgain(&seg.Tensors[id]) && !isLeaf(id) }
	class = slices.Repeat([]int32{-1}, len(seg.Tensors))
	need, any := make([]bool, len(seg.Tensors)), false // tensors that recipes of virtual results need
	for n := len(seg.Nodes) - 1; n >= 0; n-- {
		id := seg.Out[n]
		if made(id) {
			need[id], any = true, true
		}
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if !a.Scalar && need[id] && !isLeaf(id) {
				need[a.ID] = true
			}
		}
	}
	if !any {
		return nil, class
	}
	leaves := make([][]int32, len(seg.Tensors)) // sorted
	byText := map[string]int32{}
	for id := range seg.Tensors {
		if need[id] && isLeaf(int32(id)) {
			leaves[id] = []int32{int32(id)}
		}
	}
	for n := range seg.Nodes {
		id := seg.Out[n]
		if !need[id] || isLeaf(id) {
			continue
		}
		var set []int32
		for _, a := range seg.Nodes[n].Args[:seg.Nodes[n].NArgs] {
			if !a.Scalar {
				set = union(set, leaves[a.ID])
			}
		}
		leaves[id] = set
		if !made(id) {
			continue
		}
		key := string(asBytes(set))
		c, ok := byText[key]
		if !ok {
			c = int32(len(sets))
			byText[key] = c
			sets = append(sets, set)
		}
		class[id] = c
	}
	return sets, class
}

// IsLeaf reports a tensor from which recipes start: an operand, or a result written for good.
func IsLeaf(t *segment.Tensor) bool { return t.Def < 0 || t.Life == segment.LifeWrite && !t.Lent }

// madeAgain reports a result that has a recipe: it is virtual, or lent.
func madeAgain(t *segment.Tensor) bool { return t.Life == segment.LifeVirtual || t.Lent }

// shortSets is leafSets where recipes start from lent results, too. It is the same as sets without
// lent results.
func shortSets(seg *segment.Segment, sets [][]int32, class []int32) ([][]int32, []int32) {
	for id := range seg.Tensors {
		if seg.Tensors[id].Lent {
			return leafSets(seg, true)
		}
	}
	return sets, class
}

func union(a, b []int32) []int32 {
	if len(a) == 0 {
		return b
	}
	out := make([]int32, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || (len(a) > 0 && a[0] < b[0]):
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}

func asBytes(set []int32) []byte {
	b := make([]byte, 0, 4*len(set))
	for _, x := range set {
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}
