package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// At returns the tape for other sizes of the axes, which are in the order of their numbers. It
// returns an error if the same ops cannot have these sizes, for example because another size in
// the tape would become 0, 1 or negative.
func (g *General) At(sizes []int) (*Tape, error) {
	if !g.tape.retain() {
		return nil, errNotGeneral
	}
	defer g.tape.Release()
	at := sized{g: g}
	err := at.evaluate(sizes)
	if err != nil {
		return nil, err
	}
	was := g.tape
	t := &Tape{dev: was.dev, products: was.products}
	t.users.Store(1)
	for i, x := range was.inputs {
		x.form = at.forms[g.inputs[i]]
		t.inputs = append(t.inputs, x)
	}
	products := make([]*queue.Form, was.products)
	form := func(from tapeSource, own *queue.Form) *queue.Form {
		switch from.kind {
		case tapeArg:
			return t.inputs[from.n].form
		case tapeProduct:
			return products[from.n]
		}
		if m, named := g.memory[from.n]; named {
			return at.forms[m.form]
		}
		return own
	}
	for i, p := range was.parts {
		gp := &g.parts[i]
		scalars := p.saved.Scalars()
		for _, sc := range gp.scalars {
			scalars[sc.at].Bits = sc.bitsOf(at.values[sc.poly])
		}
		saved, err := p.saved.Resized(&t.dev.plans.Attrs, queue.Sizes{
			Input: func(slot int32) *queue.Form { return form(gp.from[slot], p.saved.Slot(slot).Form) },
			Node: func(i int32, n *ir.Node, in []ir.Operand) (*queue.Form, *ir.Attr, error) {
				return at.node(gp.first+int(i), n, in)
			},
			Scalars: scalars,
		})
		if err != nil {
			return nil, err
		}
		part := &tapePart{saved: saved, end: p.end, operands: p.operands, last: p.last}
		for _, r := range p.results {
			r.form = saved.Slot(r.slot).Form
			products[r.product] = r.form
			part.results = append(part.results, r)
		}
		t.parts = append(t.parts, part)
	}
	for _, o := range was.outs {
		o.form = form(o.tapeSource, o.form)
		t.outs = append(t.outs, o)
	}
	for i, st := range was.constants {
		if st, err = at.view(i, st); err != nil {
			return nil, err
		}
		t.constants = append(t.constants, st)
	}
	for _, st := range t.constants {
		st.Retain()
		st.Watch()
	}
	t.dev.Counts.Resizes.Add(1)
	return t, nil
}

// sized is a General at given sizes.
type sized struct {
	g      *General
	values []int64 // values of the polynomials
	forms  []*queue.Form
}

// evaluate computes all numbers and shapes.
func (at *sized) evaluate(sizes []int) error {
	g := at.g
	var x []int
	for _, axis := range g.free {
		x = append(x, sizes[axis])
	}
	for _, p := range g.polys {
		v, ok := p.At(x)
		if !ok {
			return fmt.Errorf("%w: with inputs of sizes %v a size is too large", errNotGeneral, x)
		}
		at.values = append(at.values, v)
	}
	fixed := at.fixed()
	for _, list := range g.forms {
		shape := make(ir.Shape, len(list))
		for d, n := range list {
			if shape[d] = int(at.values[n]); shape[d] < 2 && !fixed[n] {
				return fmt.Errorf("%w: with inputs of sizes %v a size is %d", errNotGeneral, x, shape[d])
			}
		}
		if err := shape.Check(); err != nil {
			return err
		}
		at.forms = append(at.forms, queue.NewForm(shape))
	}
	return nil
}

// fixed reports which polynomials are constants.
func (at *sized) fixed() []bool {
	list := make([]bool, len(at.g.polys))
	for i, p := range at.g.polys {
		list[i] = true
		for _, t := range p {
			for _, e := range t.Exp {
				list[i] = list[i] && e == 0
			}
		}
	}
	return list
}

// node returns the result form and attributes of an op at these sizes. It checks again that the
// operands give this result; otherwise kernels would read outside of their memory.
func (at *sized) node(i int, n *ir.Node, in []ir.Operand) (*queue.Form, *ir.Attr, error) {
	g := &at.g.nodes[i]
	form, attr := at.forms[g.form], n.Attr
	if attr != nil && len(attr.Start)+len(attr.Step) > 0 {
		changed := *attr
		changed.Start, changed.Step = at.ints(g.start), at.ints(g.step)
		attr = &changed
	}
	_, shape, err := ir.Infer(n.Op, attr, n.DT, form.Shape, in...)
	if err == nil && !shape.Equal(form.Shape) {
		err = fmt.Errorf("%w: %s has shape %v, predicted was %v", errNotGeneral, n.Op, shape, form.Shape)
	}
	if err != nil {
		return nil, nil, err
	}
	return form, attr, nil
}

// view returns memory from outside with the view for these sizes. It checks that the view stays
// within the memory.
func (at *sized) view(constant int, st *memory.Storage) (*memory.Storage, error) {
	m, named := at.g.memory[constant]
	if !named || m.stride == nil {
		return st, nil
	}
	v := &fusion.View{Offset: at.values[m.offset]}
	elems := st.Bytes / int64(at.g.tape.dev.Caps.ElemSize[m.dt])
	least, most := v.Offset, v.Offset
	for d, n := range m.stride {
		v.Stride = append(v.Stride, at.values[n])
		if at.values[n] < -elems || at.values[n] > elems {
			least = -1 // before a product overflows
			break
		}
		if reach := at.values[n] * int64(at.forms[m.form].Shape[d]-1); reach < 0 {
			least += reach
		} else {
			most += reach
		}
	}
	if at.forms[m.form].Elems > 0 && (least < 0 || most >= elems) {
		return nil, fmt.Errorf("%w: a view reaches from byte %d to %d of %d", errNotGeneral, least, most, st.Bytes)
	}
	return &memory.Storage{Block: st.Block, View: v}, nil
}

func (at *sized) ints(polys []int) []int {
	if len(polys) == 0 {
		return nil
	}
	list := make([]int, len(polys))
	for i, n := range polys {
		list[i] = int(at.values[n])
	}
	return list
}
