package planstore

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// Memo keeps the layouts of the sizes that a plan ran with recently. A hot segment returns with
// the same sizes or with one of a few: the last batch of an epoch may be smaller, and layers of
// different widths may share a plan.
type Memo struct {
	Inputs []int32 // relative ids of operands
	Nodes  []int32 // nodes whose shapes do not follow from their operands

	last atomic.Pointer[Geometry]    // the geometry of the last run
	all  atomic.Pointer[[]*Geometry] // an immutable list
	mu   sync.Mutex                  // guards the growth of all
	time atomic.Uint64
}

// MaxGeometries is the largest number of geometries that a plan keeps.
const MaxGeometries = 8

// Last returns the geometry of the plan's last run, nil before the first.
func (m *Memo) Last() *Geometry { return m.last.Load() }

// Find returns a geometry that satisfies fits, or nil. It tries the last one first, then the one
// that followed it last time. So a program that repeats a sequence of sizes finds each at once.
func (m *Memo) Find(fits func(*Geometry) bool) *Geometry {
	g := m.last.Load()
	if g == nil || fits(g) {
		return g
	}
	if n := g.next.Load(); n != nil && fits(n) {
		m.take(n)
		return n
	}
	for _, n := range *m.all.Load() {
		if n != g && fits(n) {
			m.take(n)
			return n
		}
	}
	return nil
}

// take records that the plan now runs with another geometry.
func (m *Memo) take(g *Geometry) {
	now := m.time.Add(1)
	if was := m.last.Swap(g); was != nil {
		was.next.Store(g)
		was.used.Store(now)
	}
	g.used.Store(now)
}

// Add keeps a geometry. If there are too many, it drops the one unused for longest.
func (m *Memo) Add(g *Geometry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*Geometry
	if have := m.all.Load(); have != nil {
		all = slices.Clone(*have)
	}
	if len(all) == MaxGeometries {
		last, old := m.last.Load(), -1
		for i, x := range all {
			if x != last && (old < 0 || x.used.Load() < all[old].used.Load()) {
				old = i
			}
		}
		gone := all[old]
		for _, x := range all { // a link would keep the dropped geometry, and those it links to, alive
			x.next.CompareAndSwap(gone, nil)
		}
		gone.next.Store(nil) // a recipe may still hold gone; its link would keep all later ones alive
		all = slices.Delete(all, old, old+1)
	}
	all = append(all, g)
	m.all.Store(&all)
	m.take(g)
}

// Geometry is one set of shapes and the layouts that follow from it. It is immutable, but for its
// atomic fields. Records of segments that ran with it share its copy of their nodes.
type Geometry struct {
	Seg    segment.Segment // without scalars
	Shapes []ir.Shape      // of Memo.Inputs, then of Memo.Nodes
	Attrs  []*ir.Attr      // of Memo.Nodes
	Views  []*fusion.View
	Layout *fusion.Layout
	Tuned  atomic.Pointer[autotune.Tuned] // nil until it runs

	next atomic.Pointer[Geometry] // the geometry with which the plan ran after it
	used atomic.Uint64            // the Memo's time at which the plan last began or stopped using it
}

func (m *Memo) init(seg *segment.Segment) {
	for id := range seg.Tensors {
		if seg.Tensors[id].Def < 0 {
			m.Inputs = append(m.Inputs, int32(id))
		}
	}
	for n := range seg.Nodes {
		switch seg.Nodes[n].Op.Class() {
		case ir.ClassView, ir.ClassCreate, ir.ClassMove:
			m.Nodes = append(m.Nodes, int32(n))
		}
	}
}

// Fits reports that a segment whose operands are in mem has the shapes and layouts of a geometry.
func (m *Memo) Fits(g *Geometry, seg *segment.Segment, mem []*memory.Storage) bool {
	for i, id := range m.Inputs {
		if !seg.Tensors[id].Shape.Equal(g.Shapes[i]) || !SameView(mem[id].View, g.Views[i]) {
			return false
		}
	}
	for i, n := range m.Nodes {
		if node := &seg.Nodes[n]; !node.Shape.Equal(g.Shapes[len(m.Inputs)+i]) || !SameAttr(node.Attr, g.Attrs[i]) {
			return false
		}
	}
	return true
}

// SameView reports equal layouts that are both nil or both strided, and the same view always.
func SameView(a, b *fusion.View) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Offset == b.Offset && slices.Equal(a.Stride, b.Stride) &&
		len(a.Stages) == 0 && len(b.Stages) == 0
}

// SameAttr compares the parts of attributes that are not in the relative form.
func SameAttr(a, b *ir.Attr) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && slices.Equal(a.Start, b.Start) && slices.Equal(a.Step, b.Step)
}

// LastRead returns the last step that reads tensor t's memory, or -1.
func (e *Known) LastRead(t int) int {
	if u := e.Plan.Uses(); t < len(u.Read) {
		return u.Read[t]
	}
	return -1
}
