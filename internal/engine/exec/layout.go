package exec

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/segment"
)

// layout returns the layouts of all kernel operands: a remembered geometry, or a new one.
func (w *Binder) layout(ent *planstore.Known, seg *segment.Segment) (*planstore.Geometry, error) {
	m := &ent.Memo
	if g := m.Find(func(g *planstore.Geometry) bool { return m.Fits(g, seg, w.Mem) }); g != nil {
		return g, nil
	}
	w.Counts.Layouts.Add(1)
	w.views = w.views[:0]
	g := &planstore.Geometry{}
	for id := range seg.Tensors {
		t := &seg.Tensors[id]
		if t.Def >= 0 {
			w.views = append(w.views, fusion.View{})
			continue
		}
		w.views = append(w.views, w.Mem[id].Layout())
		g.Shapes = append(g.Shapes, t.Shape)
		g.Views = append(g.Views, w.Mem[id].View)
	}
	for _, n := range m.Nodes {
		g.Shapes = append(g.Shapes, seg.Nodes[n].Shape)
		g.Attrs = append(g.Attrs, seg.Nodes[n].Attr)
	}
	lay, err := ent.Plan.Layout(seg, w.views)
	for indexed := (*fusion.IndexedViewError)(nil); errors.As(err, &indexed); lay, err = ent.Plan.Layout(seg, w.views) {
		if err := w.densify(seg, indexed.Tensor); err != nil {
			return nil, err
		}
		w.views[indexed.Tensor] = fusion.View{}
		m = new(planstore.Memo) // the dense copy exists in this flush only, so the plan must not remember the geometry
	}
	if err != nil {
		return nil, err
	}
	g.Layout = lay
	g.Seg = segment.Segment{Nodes: slices.Clone(seg.Nodes), Out: slices.Clone(seg.Out), Tensors: slices.Clone(seg.Tensors)}
	m.Add(g)
	return g, nil
}
