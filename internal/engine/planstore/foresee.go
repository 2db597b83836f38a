package planstore

import (
	"slices"
	"sync"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// A program reads the mean of a costly result, and then its deviation. When the mean runs, nothing
// says that the result will be needed again. Writing it costs little beside computing it, so it is
// written unasked. The same segment stops doing so if nothing reads what it wrote: see unasked.

// Foresight says which results are written unasked.
type Foresight struct {
	Work    int     // lowest number of lowered instructions for each element
	Seconds float64 // lowest predicted time to compute the result
	Results int     // largest number of results of a segment
}

// foresight is that of a device. A result that takes less time costs no more than the launches of
// the read that needs it.
var foresight = Foresight{Work: costlyWork, Seconds: 50e-6, Results: 4}

const (
	cheapWork   = costlyWork / 10 // instructions that cost as much as to write and read an element
	overTraffic = 10              // the time to compute a result, over that to write it
	fewBases    = 2               // results from which another one is computed cheaply
	smallShare  = 20              // a part of the work that is smaller than one of so many is not counted
	mostRead    = 32              // results that are looked at
)

// Foresee picks results that the program can name and has not asked for, and that the segment should
// write nevertheless: all later reads of results near them start from these, and cost little. They
// are costly results that a row op reads, such as that of a mean, and the results from which such a
// result, or one that is written, takes few instructions: x of the mean of x.Square(). most is the
// largest number of bytes to write.
func (f *Foresight) Foresee(seg *segment.Segment, caps *runtime.Caps, most int64) []int32 {
	x := &foreseeing{Foresight: f, seg: seg, caps: caps, work: fusion.Work(seg), seen: make([]int32, len(seg.Tensors))}
	x.op, x.byte = fusion.Costs(caps)
	if !x.worthwhile() {
		return nil
	}
	var read []int32 // results that row ops read, or that are written
	for n := range seg.Nodes {
		node := &seg.Nodes[n]
		if !segment.Costly(node.Op) {
			if id := seg.Out[n]; seg.Tensors[id].Life == segment.LifeWrite {
				read = with(read, x.base(id))
			}
			continue
		}
		for _, a := range node.Args[:node.NArgs] {
			if !a.Scalar {
				read = with(read, x.base(a.ID))
			}
		}
	}
	read = read[:min(len(read), mostRead)]
	var picked []int32
	pick := func(id int32) {
		if bytes := x.bytes(id); len(picked) < f.Results && bytes <= most && !slices.Contains(picked, id) {
			picked, most = append(picked, id), most-bytes
		}
	}
	for _, id := range read {
		if id >= 0 && x.elementwise(id) {
			for _, b := range x.bases(id) {
				pick(b)
			}
		}
	}
	for _, id := range read {
		if id >= 0 && x.worth(id) && !slices.ContainsFunc(read, func(o int32) bool { return x.cheapFrom(id, o) }) {
			pick(id)
		}
	}
	slices.Sort(picked)
	return picked
}

type foreseeing struct {
	*Foresight
	seg      *segment.Segment
	caps     *runtime.Caps
	work     []int
	op, byte float64
	seen     []int32 // by tensor: the number of the last walk that came there
	walks    int32
}

// worthwhile reports that the whole segment takes long enough for one of its results to be worth
// writing. It saves the analysis of most segments.
func (x *foreseeing) worthwhile() bool {
	sum := int64(0)
	for n := range x.seg.Nodes {
		sum += x.cost(int32(n))
	}
	return float64(sum)*x.op >= x.Seconds
}

// cost is the number of instructions of a node, for all elements.
func (x *foreseeing) cost(n int32) int64 {
	return int64(x.work[n]) * x.elems(x.seg.Out[n])
}

func (x *foreseeing) elems(id int32) int64 { return int64(x.seg.Tensors[id].Shape.Elems()) }

func (x *foreseeing) bytes(id int32) int64 {
	t := &x.seg.Tensors[id]
	return x.elems(id) * int64(x.caps.ElemSize[t.DT])
}

// leaf reports a tensor that needs no computation after the segment: an operand, a written result,
// one that is written if several kernels need it, or a constant.
func (x *foreseeing) leaf(id int32) bool {
	t := &x.seg.Tensors[id]
	return IsLeaf(t) || segment.Costly(x.seg.Nodes[t.Def].Op) || x.seg.Nodes[t.Def].Op == ir.Full
}

// base follows views to the tensor that they show. It returns -1 if they leave out elements of it:
// then it may not be computed as a whole.
func (x *foreseeing) base(id int32) int32 {
	for {
		d := x.seg.Tensors[id].Def
		if d < 0 || x.seg.Nodes[d].Op.Class() != ir.ClassView {
			return id
		}
		of := x.seg.Nodes[d].Args[0].ID
		if x.elems(of) > x.elems(id) {
			return -1
		}
		id = of
	}
}

// instructions counts the instructions that compute id from leaves, and from the tensor from if it is
// not -1. A node counts once.
func (x *foreseeing) instructions(id, from int32) int64 {
	x.walks++
	sum := int64(0)
	var visit func(t int32)
	visit = func(t int32) {
		if x.seen[t] == x.walks || t == from || x.seg.Tensors[t].Def < 0 || t != id && x.leaf(t) {
			return
		}
		x.seen[t] = x.walks
		n := x.seg.Tensors[t].Def
		sum += x.cost(n)
		for _, a := range x.seg.Nodes[n].Args[:x.seg.Nodes[n].NArgs] {
			if !a.Scalar {
				visit(a.ID)
			}
		}
	}
	visit(id)
	return sum
}

// worth reports that a result can be named, is not written, and takes much more time than writing
// it.
func (x *foreseeing) worth(id int32) bool {
	t := &x.seg.Tensors[id]
	if t.Life != segment.LifeVirtual || x.leaf(id) || x.seg.Nodes[t.Def].Op.Class() == ir.ClassView {
		return false
	}
	work := x.instructions(id, -1)
	seconds := float64(work) * x.op
	return work >= int64(x.Work)*x.elems(id) && seconds >= x.Seconds && seconds >= overTraffic*x.byte*float64(x.bytes(id))
}

// cheapFrom reports that a result takes few instructions from another one.
func (x *foreseeing) cheapFrom(id, other int32) bool {
	return other >= 0 && other != id && x.worth(other) && x.instructions(id, other) <= cheapWork*x.elems(id)
}

// elementwise reports a result that is computed element by element.
func (x *foreseeing) elementwise(id int32) bool {
	d := x.seg.Tensors[id].Def
	return d >= 0 && !segment.Costly(x.seg.Nodes[d].Op)
}

// bases returns the first results from which id can be computed by few instructions, if all of them
// are worth writing. It returns nil if there are none but id.
func (x *foreseeing) bases(id int32) (found []int32) {
	all, cheap := x.instructions(id, -1), cheapWork*x.elems(id)
	if all < int64(x.Work)*x.elems(id) {
		return nil
	}
	at := []int32{id}
	for {
		i := slices.IndexFunc(at, func(a int32) bool { return x.cost(x.seg.Tensors[a].Def) <= cheap })
		if i < 0 {
			return found
		}
		n := x.seg.Tensors[at[i]].Def
		cheap -= x.cost(n)
		at = slices.Delete(at, i, i+1)
		for _, a := range x.seg.Nodes[n].Args[:x.seg.Nodes[n].NArgs] {
			if a.Scalar {
				continue
			}
			b := x.base(a.ID)
			if b < 0 {
				return found
			}
			if !x.leaf(b) && x.instructions(b, -1)*smallShare >= all {
				at = with(at, b)
			}
		}
		if len(at) == 0 || len(at) > fewBases {
			return found
		}
		if !slices.ContainsFunc(at, func(a int32) bool { return !x.worth(a) }) {
			found = slices.Clone(at)
		}
	}
}

// unasked is what became of the results that a plan writes unasked.
type unasked struct {
	mu   sync.Mutex
	ids  []int32
	used []bool // a later segment, or a read, needed the result
	runs int
	none bool // the segment wrote results unasked for nothing, and this plan writes none
}

// WritesNone records that the plan writes no results unasked because it did so for nothing.
func (u *unasked) WritesNone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.none = true
}

// None reports what WritesNone recorded.
func (u *unasked) None() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.none
}

// unaskedRuns is the number of runs after which a plan no longer writes results that nothing read.
const unaskedRuns = 3

// Writes records that a run of the plan writes these results unasked.
func (u *unasked) Writes(ids []int32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids, u.used = slices.Clone(ids), make([]bool, len(ids))
	}
	u.runs++
}

// Used records that a result which the plan wrote unasked was needed.
func (u *unasked) Used(id int32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.Index(u.ids, id); i >= 0 {
		u.used[i] = true
	}
}

// Useful returns those of the results to be written unasked that are worth it after the runs so far.
func (u *unasked) Useful(ids []int32) []int32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.runs < unaskedRuns || slices.Contains(u.used, true) && !slices.Contains(u.used, false) {
		return ids
	}
	var useful []int32
	for i, id := range u.ids {
		if u.used[i] {
			useful = append(useful, id)
		}
	}
	return useful
}
