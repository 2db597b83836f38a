package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
	"slices"
)

// An indexMap takes points of a domain of one shape class to elements of a value of another class.
// It is a list of steps in canonical form: consecutive broadcasts are one broadcast, consecutive
// permutations one permutation, consecutive reshapes one reshape, and steps that cancel are
// dropped. So two ways to reach the same elements are the same *indexMap, and a kernel reads an
// operand once.
type indexMap struct {
	from, to int32 // shape classes
	steps    []mapStep
	before   *indexMap // the map without its last step; nil if it has no steps
	moved    int       // number of stepMove steps
	// elems is the size, at explored shapes, of the smallest shape on the way. The map reaches at
	// most so many elements.
	elems int64
	id    int32
	taken bool // the memory behind steps belongs to a map with one more step
}

type stepKind uint8

const (
	stepBroadcast stepKind = iota
	stepPermute
	stepReshape
	stepSlice
	stepWindow
	stepMove    // to the operand of a Pad, Concat or Assign that gives a part
	stepBound   // to a number: see Bound
	stepGather  // to the data that indices select from
	stepScatter // from the indices of a Scatter to its data
	stepPiece   // from an operand of a Concat up to the result
)

// folds reports kinds of step of which two consecutive ones are one.
func (k stepKind) folds() bool { return k <= stepReshape }

type mapStep struct {
	kind     stepKind
	from, to int32
	axes     []int // stepPermute: dim i of to is dim axes[i] of from
	node     int32 // the node that the step crosses; part of the key for stepSlice and later kinds
	hops     []Hop
}

// stepKey identifies a step among those that extend one map.
type stepKey struct {
	kind     stepKind
	rank     uint8
	to, node int32  // node is -1 for kinds that fold
	axes     uint64 // one byte each
}

func (s *mapStep) key() stepKey {
	k := stepKey{kind: s.kind, rank: uint8(len(s.axes)), to: s.to, node: -1}
	for _, ax := range s.axes {
		k.axes = k.axes<<8 | uint64(uint8(ax))
	}
	if !s.kind.folds() {
		k.node = s.node
	}
	return k
}

// edge is a node that is crossed from its result to its operand, or back up.
type edge struct {
	node int32
	up   bool
}

// mapSet interns the index maps of one exploration.
type mapSet struct {
	seg   *segment.Segment
	class *classes
	roots map[int32]*indexMap        // identity maps, by class
	on    table[mapKey, *indexMap]   // maps with one more step
	next  table[crossing, *indexMap] // cache of through
	made  int                        // number of steps of all maps
	count int32                      // number of maps
}

func newMapSet(seg *segment.Segment, c *classes) *mapSet {
	return &mapSet{seg: seg, class: c, roots: make(map[int32]*indexMap)}
}

func (ms *mapSet) elems(class int32) int64 { return ms.class.elems[class] }

// identity is the map of a domain onto values of its own class.
func (ms *mapSet) identity(class int32) *indexMap {
	m := ms.roots[class]
	if m == nil {
		m = &indexMap{from: class, to: class, elems: ms.elems(class), id: ms.count}
		ms.count++
		ms.roots[class] = m
	}
	return m
}

// broadcast extends m by a broadcast to a class.
func (ms *mapSet) broadcast(m *indexMap, to int32) *indexMap {
	if m.to == to {
		return m
	}
	return ms.push(m, mapStep{kind: stepBroadcast, from: m.to, to: to, hops: ms.toward(to)})
}

// toward is the path of a broadcast to a class that has a tensor.
func (ms *mapSet) toward(class int32) []Hop { return []Hop{{Node: -1, Arg: int(ms.class.rep[class])}} }

// row is the map from the operand of a row op to its result. For a reduction it is the map onto the
// kept dims. A result can come back to the operand's shape in several ways: kept as 1, or reshaped,
// then broadcast or expanded. The map through all of these steps is this one.
func (ms *mapSet) row(def int32) *indexMap {
	n := &ms.seg.Nodes[def]
	d, out := ms.class.of[n.Args[0].ID], ms.class.of[ms.seg.Out[def]]
	m := ms.identity(d)
	switch n.Op.Class() {
	case ir.ClassReduce:
	case ir.ClassScatter:
		return ms.scatter(def)
	default:
		return m
	}
	up := []Hop{{Node: int(def), Up: true}}
	k := ms.class.kept(d, n.Attr.Axes)
	if k != d {
		s := mapStep{kind: stepBroadcast, from: d, to: k, hops: up}
		if ms.class.rep[k] >= 0 {
			s.hops = ms.toward(k)
		}
		m = ms.push(m, s)
	}
	return ms.push(m, mapStep{kind: stepReshape, from: k, to: out, node: def, hops: up})
}

// through extends m across a view node, from its result to its operand or (Permute and Reshape
// only) up from its operand to its result.
func (ms *mapSet) through(m *indexMap, e edge) *indexMap {
	key := crossing{m, e}
	if n, ok := ms.next.get(key); ok {
		return n
	}
	node := &ms.seg.Nodes[e.node]
	from, to := ms.class.of[ms.seg.Out[e.node]], ms.class.of[node.Args[0].ID]
	if e.up {
		from, to = to, from
	}
	s := mapStep{from: from, to: to, node: e.node, hops: []Hop{{Node: int(e.node), Up: e.up}}}
	var n *indexMap
	switch node.Op {
	case ir.Expand:
		n = ms.broadcast(m, to)
	case ir.Permute:
		s.kind, s.axes = stepPermute, node.Attr.Axes
		if !e.up {
			s.axes = inversePerm(s.axes)
		}
		n = ms.push(m, s)
	case ir.Reshape:
		s.kind = stepReshape
		n = ms.push(m, s)
	case ir.Window:
		s.kind = stepWindow
		n = ms.push(m, s)
	default:
		s.kind = stepSlice
		n = ms.push(m, s)
	}
	ms.next.set(key, n)
	return n
}

// then is m followed by n, which starts where m ends.
func (ms *mapSet) then(m, n *indexMap) *indexMap {
	for _, s := range n.steps {
		m = ms.push(m, s)
	}
	return m
}

// inverse is the map back, if m is one to one.
func (ms *mapSet) inverse(m *indexMap) (*indexMap, bool) {
	if !m.bijective() {
		return nil, false
	}
	inv := ms.identity(m.to)
	for i := len(m.steps) - 1; i >= 0; i-- {
		s := m.steps[i]
		r := mapStep{kind: s.kind, from: s.to, to: s.from, node: s.node}
		if s.kind == stepPermute {
			r.axes = inversePerm(s.axes)
		}
		for j := len(s.hops) - 1; j >= 0; j-- {
			h := s.hops[j]
			h.Up = !h.Up
			r.hops = append(r.hops, h)
		}
		inv = ms.push(inv, r)
	}
	return inv, true
}

// push appends a step. It joins the step with the last one if both are of one kind.
func (ms *mapSet) push(m *indexMap, s mapStep) *indexMap {
	if s.kind == stepReshape && s.from == s.to {
		return m
	}
	if m.before != nil && s.kind == stepBroadcast {
		m, s = ms.behindGather(m, s)
	}
	if last := m.last(); last != nil && last.kind == s.kind && s.kind.folds() {
		m, s = m.before, fold(*last, s)
	}
	if last := m.last(); last != nil && s.kind == stepReshape && last.kind == stepBroadcast {
		m, s = ms.afterBroadcast(m, s)
	}
	if s.identity() {
		return m
	}
	return ms.goOn(m, s)
}

// last is the last step, nil if there is none.
func (m *indexMap) last() *mapStep {
	if len(m.steps) == 0 {
		return nil
	}
	return &m.steps[len(m.steps)-1]
}

// goOn appends a step that does not join with the last one.
func (ms *mapSet) goOn(m *indexMap, s mapStep) *indexMap {
	k := mapKey{m, s.key()}
	if n, ok := ms.on.get(k); ok {
		return n
	}
	n := &indexMap{from: m.from, to: s.to, before: m, moved: m.moved, elems: min(m.elems, ms.elems(s.to)), id: ms.count}
	ms.count++
	if m.taken {
		n.steps = append(m.steps[:len(m.steps):len(m.steps)], s)
	} else { // the first map with one more step shares the memory of the steps that both have
		n.steps, m.taken = append(m.steps, s), true
	}
	if s.kind == stepMove {
		n.moved++
	}
	ms.made += len(n.steps)
	ms.on.set(k, n)
	return n
}

// afterBroadcast brings a reshape after a broadcast to canonical form. The broadcast goes to a
// shape without leading 1s. A reshape that only adds leading 1s becomes part of the broadcast, if
// the broadcast could have left them.
func (ms *mapSet) afterBroadcast(m *indexMap, s mapStep) (*indexMap, mapStep) {
	b := *m.last()
	short := ms.class.stripped(b.to)
	if ms.class.stripped(s.to) == short && len(ms.class.dims[s.to]) <= len(ms.class.dims[b.from]) {
		b.to, b.hops = s.to, ms.toward(s.to)
		return m.before, b
	}
	if short != b.to {
		b.to = short
		if ms.class.rep[short] >= 0 {
			b.hops = ms.toward(short)
		}
		m = ms.goOn(m.before, b)
	}
	s.from = short
	return m, s
}

// fold joins step a and the step b after it, of the same kind.
func fold(a, b mapStep) mapStep {
	r := mapStep{kind: a.kind, from: a.from, to: b.to, hops: b.hops}
	switch a.kind {
	case stepPermute:
		r.axes = make([]int, len(b.axes))
		for i, ax := range b.axes {
			r.axes[i] = a.axes[ax]
		}
		r.hops = append(a.hops[:len(a.hops):len(a.hops)], b.hops...)
	case stepReshape:
		// The last hop says where the reshape goes; the first one is the last hop of the way back.
		r.hops = []Hop{a.hops[0], b.hops[len(b.hops)-1]}
	}
	return r
}

func (s *mapStep) identity() bool {
	switch s.kind {
	case stepPermute:
		for i, ax := range s.axes {
			if i != ax {
				return false
			}
		}
		return true
	case stepReshape, stepBroadcast:
		return s.from == s.to
	}
	return false
}

// path is the map in the form of plans.
func (m *indexMap) path() []Hop {
	var p []Hop
	for _, s := range m.steps {
		if s.kind == stepReshape {
			// A broadcast that came this way has the same hop, which does both.
			if h := s.hops[len(s.hops)-1]; len(p) == 0 || p[len(p)-1] != h {
				p = append(p, h)
			}
			continue
		}
		p = append(p, s.hops...)
	}
	return p
}

// bijective reports that every element is reached at exactly one point.
func (m *indexMap) bijective() bool {
	return !slices.ContainsFunc(m.steps, func(s mapStep) bool { return s.kind != stepPermute && s.kind != stepReshape })
}

// permutes reports that neighbours in the domain need not be neighbours in memory.
func (m *indexMap) permutes() bool {
	return slices.ContainsFunc(m.steps, func(s mapStep) bool { return s.kind == stepPermute })
}

// storable reports that every element is reached, and that an element reached several times is
// reached once at position 0 of the dims that broadcast, where guarded stores write. A broadcast
// after a reshape is refused, because the dims that it drops need not be dims of the domain.
func (m *indexMap) storable() bool {
	reshaped := false
	for _, s := range m.steps {
		switch s.kind {
		case stepPermute:
		case stepReshape:
			reshaped = true
		case stepBroadcast:
			if reshaped {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func inversePerm(axes []int) []int {
	inv := make([]int, len(axes))
	for i, a := range axes {
		inv[a] = i
	}
	return inv
}
