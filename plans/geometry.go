package plans

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/autotune"
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/segment"
)

// Memo keeps the layouts of the sizes that a plan ran with lately: a hot segment comes
// back with the same ones, or with one of a few, as where the last batch of an epoch is
// smaller, or layers of several widths have one plan.
type Memo struct {
	Inputs []int32 // relative ids of operands
	Nodes  []int32 // nodes whose shapes do not follow from their operands

	last atomic.Pointer[Geometry]    // what it ran with last
	all  atomic.Pointer[[]*Geometry] // an immutable list
	mu   sync.Mutex                  // guards all's growth
	time atomic.Uint64
}

// MaxGeometries is how many sizes' layouts a plan keeps.
const MaxGeometries = 8

// Last is the layout that the plan ran with last, nil before it ran.
func (m *Memo) Last() *Geometry { return m.last.Load() }

// Find is a layout of which fits holds, or nil. The one taken last is tried first, then
// the one that came behind it last time: whatever the number of sizes, a program that goes
// through them in turn finds each at once.
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

// take notes that the plan runs with another layout than last time.
func (m *Memo) take(g *Geometry) {
	now := m.time.Add(1)
	if was := m.last.Swap(g); was != nil {
		was.next.Store(g)
		was.used.Store(now)
	}
	g.used.Store(now)
}

// Add keeps a layout, in place of the one used longest ago where there are many.
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
		for _, x := range all { // or it would be held, and what came behind it
			x.next.CompareAndSwap(gone, nil)
		}
		gone.next.Store(nil) // who holds it, as recipes do, would hold all that came since
		all = slices.Delete(all, old, old+1)
	}
	all = append(all, g)
	m.all.Store(&all)
	m.take(g)
}

// Geometry is one set of shapes and what follows from it. Immutable. Records of
// segments that ran with it share its copy of their nodes.
type Geometry struct {
	Seg    segment.Segment // without scalars
	Shapes []ir.Shape      // of Memo.Inputs, then of Memo.Nodes
	Attrs  []*ir.Attr      // of Memo.Nodes
	Views  []*fusion.View
	Layout *fusion.Layout
	Tuned  atomic.Pointer[autotune.Tuned] // nil until it runs

	next atomic.Pointer[Geometry] // what its plan ran with behind it
	used atomic.Uint64            // when its plan took it, or left it for another one
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

// Fits reports that a segment, with its operands in mem, is laid out as a geometry says.
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

// SameView reports layouts that are equal and strided.
func SameView(a, b *fusion.View) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && a.Offset == b.Offset && slices.Equal(a.Stride, b.Stride) &&
		len(a.Stages) == 0 && len(b.Stages) == 0
}

// SameAttr compares what of an attribute is not part of the relative form.
func SameAttr(a, b *ir.Attr) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && slices.Equal(a.Start, b.Start) && slices.Equal(a.Step, b.Step)
}

// LastRead is the last step that reads a tensor's memory; -1 for none.
func (e *Known) LastRead(t int) int {
	if u := e.Plan.Uses(); t < len(u.Read) {
		return u.Read[t]
	}
	return -1
}
