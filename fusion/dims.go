package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
	"slices"
)

// dimSet says which dims of a segment's tensors are equal in every segment of the same relative
// form, not only in this one. It is a union-find with one variable per dim. Each node adds the
// facts that are part of its relative form (an operand dim equals a result dim, or is 1).
type dimSet struct {
	parent []int32
	first  []int32 // the variable of each tensor's dim 0
	guards []Guard // equalities that are assumed and that the relative form does not say
}

// one is the variable of dims that are 1 by structure: an operand dim that broadcasts, or a reduced
// dim that is kept.
const one = 0

func newDimSet(seg *segment.Segment) *dimSet {
	d := &dimSet{first: make([]int32, len(seg.Tensors))}
	n := int32(1)
	for i := range seg.Tensors {
		d.first[i] = n
		n += int32(len(seg.Tensors[i].Shape))
	}
	d.parent = make([]int32, n)
	for i := range d.parent {
		d.parent[i] = int32(i)
	}
	for i := range seg.Nodes {
		d.relate(seg, i)
	}
	return d
}

func (d *dimSet) find(v int32) int32 {
	for d.parent[v] != v {
		d.parent[v] = d.parent[d.parent[v]]
		v = d.parent[v]
	}
	return v
}

// union joins two variables. The smaller one represents both, so "is 1" wins and the result does
// not depend on the order of unions.
func (d *dimSet) union(a, b int32) {
	a, b = d.find(a), d.find(b)
	if a > b {
		a, b = b, a
	}
	d.parent[b] = a
}

// relate adds the facts about dims that node n's relative form says.
func (d *dimSet) relate(seg *segment.Segment, n int) {
	node := &seg.Nodes[n]
	switch node.Op.Class() {
	case ir.ClassElementwise:
		for _, a := range node.Args[:node.NArgs] {
			if !a.Scalar {
				d.broadcast(seg, a.ID, seg.Out[n])
			}
		}
	case ir.ClassView:
		d.view(seg, node, node.Args[0].ID, seg.Out[n])
	case ir.ClassReduce:
		for _, a := range node.Args[1:node.NArgs] {
			d.broadcast(seg, a.ID, node.Args[0].ID) // of equal shapes
		}
		d.reduce(seg, node, node.Args[0].ID, seg.Out[n])
	case ir.ClassScan, ir.ClassSort:
		d.broadcast(seg, node.Args[0].ID, seg.Out[n])
	case ir.ClassMove:
		d.move(seg, node, seg.Out[n])
	case ir.ClassGather:
		d.gather(seg, node, seg.Out[n])
	case ir.ClassScatter:
		d.broadcast(seg, node.Args[0].ID, seg.Out[n])
		d.broadcast(seg, node.Args[2].ID, node.Args[1].ID) // of equal shapes
		d.but(seg, node.Attr.Axes[0], node.Args[1].ID, seg.Out[n])
	}
}

// move relates the dims that a Pad or an Assign does not change. That it does not change them is a
// fact of the sizes, so each becomes a guard.
func (d *dimSet) move(seg *segment.Segment, node *ir.Node, out int32) {
	if node.Op == ir.Concat {
		for _, a := range node.Args[:node.NArgs] {
			d.but(seg, node.Attr.Axes[0], a.ID, out)
		}
		return
	}
	part := node.Args[0].ID
	if node.Op == ir.Assign {
		d.broadcast(seg, part, out)
		part = node.Args[1].ID
	}
	for i, n := range seg.Tensors[part].Shape {
		if n == seg.Tensors[out].Shape[i] {
			d.union(d.first[part]+int32(i), d.first[out]+int32(i))
			d.guards = append(d.guards, Guard{A: int(part), ADim: i, B: int(out), BDim: i})
		}
	}
}

// but relates all dims except one.
func (d *dimSet) but(seg *segment.Segment, axis int, arg, out int32) {
	for i := range seg.Tensors[arg].Shape {
		if i != axis {
			d.union(d.first[arg]+int32(i), d.first[out]+int32(i))
		}
	}
}

// gather relates the dims of data, indices and result. Along the axis it relates indices and
// result, along the other dims all three where they do not broadcast.
func (d *dimSet) gather(seg *segment.Segment, node *ir.Node, out int32) {
	d.broadcast(seg, node.Args[1].ID, out)
	data := node.Args[0].ID
	for i, n := range seg.Tensors[data].Shape {
		switch v := d.first[data] + int32(i); {
		case i == node.Attr.Axes[0]:
		case n == seg.Tensors[out].Shape[i]:
			d.union(v, d.first[out]+int32(i))
		default:
			d.union(v, one)
		}
	}
}

func (d *dimSet) broadcast(seg *segment.Segment, arg, out int32) {
	from, to := seg.Tensors[arg].Shape, seg.Tensors[out].Shape
	off := len(to) - len(from)
	for i, n := range from {
		v := d.first[arg] + int32(i)
		if n == to[off+i] {
			d.union(v, d.first[out]+int32(off+i))
		} else {
			d.union(v, one)
		}
	}
}

func (d *dimSet) view(seg *segment.Segment, node *ir.Node, arg, out int32) {
	from, to := seg.Tensors[arg].Shape, seg.Tensors[out].Shape
	a, o := d.first[arg], d.first[out]
	switch node.Op {
	case ir.Expand:
		d.broadcast(seg, arg, out)
	case ir.Permute:
		for i, ax := range node.Attr.Axes {
			d.union(o+int32(i), a+int32(ax))
		}
	case ir.Reshape:
		if from.Elems() == 0 {
			return // products of 0 say nothing about dims
		}
		ir.EachRun(from, to, func(i0, i1, j0, j1 int) {
			d.run(a+int32(i0), a+int32(i1), o+int32(j0), o+int32(j1))
		})
	case ir.Window:
		for i := range from {
			switch ax := node.Attr.Axes[0]; {
			case i < ax:
				d.union(o+int32(i), a+int32(i))
			case i > ax:
				d.union(o+int32(i)+1, a+int32(i))
			}
		}
	}
}

func (d *dimSet) reduce(seg *segment.Segment, node *ir.Node, arg, out int32) {
	a, o := d.first[arg], d.first[out]
	k := int32(0)
	for i := range seg.Tensors[arg].Shape {
		reduced := has(node.Attr.Axes, i)
		switch {
		case !reduced:
			d.union(o+k, a+int32(i))
		case node.Attr.Keep:
			d.union(o+k, one)
		}
		if !reduced || node.Attr.Keep {
			k++
		}
	}
}

// run adds that two runs of variables have equal products. This says something only if at most one
// dim of each run is not 1 by structure.
func (d *dimSet) run(i0, i1, j0, j1 int32) {
	free := func(from, to int32) (v int32, ok bool) {
		n := 0
		v = one
		for u := from; u < to; u++ {
			if d.find(u) != one {
				v = u
				n++
			}
		}
		return v, n <= 1
	}
	a, ok := free(i0, i1)
	b, ok2 := free(j0, j1)
	if ok && ok2 {
		d.union(a, b)
	}
}

func has(axes []int, i int) bool {
	return slices.Contains(axes, i)
}

// classes numbers the shapes of a segment. Two tensors of one class have equal shapes at all sizes.
// Some classes have no tensor: they are shapes within index maps.
type classes struct {
	of    []int32   // the class of each tensor
	dims  [][]int32 // the dim representatives of each class
	rep   []int32   // the lowest tensor of each class, -1 if it has none
	elems []int64   // elements of each class, at explored sizes
	size  []int64   // size of each dim representative, at explored sizes
	known map[dimKey]int32

	guards []Guard // facts of the sizes that the classes rely on
}

type dimKey struct {
	rank int
	dims [ir.MaxRank]int32
}

func newClasses(seg *segment.Segment, d *dimSet) *classes {
	c := &classes{of: make([]int32, len(seg.Tensors)), size: make([]int64, len(d.parent)), known: make(map[dimKey]int32), guards: d.guards}
	c.size[one] = 1
	for t := range seg.Tensors {
		key := dimKey{rank: len(seg.Tensors[t].Shape)}
		for i, n := range seg.Tensors[t].Shape {
			v := d.find(d.first[t] + int32(i))
			key.dims[i], c.size[v] = v, int64(n)
		}
		c.of[t] = c.intern(key, int32(t))
	}
	return c
}

// intern is the number of a shape. t is a tensor of that shape, -1 if there is none.
func (c *classes) intern(key dimKey, t int32) int32 {
	if id, ok := c.known[key]; ok {
		return id
	}
	id := int32(len(c.rep))
	c.known[key] = id
	c.rep = append(c.rep, t)
	c.dims = append(c.dims, append([]int32(nil), key.dims[:key.rank]...))
	n := int64(1)
	for _, v := range key.dims[:key.rank] {
		n *= c.size[v]
	}
	c.elems = append(c.elems, n)
	return id
}

// kept is a class with the given dims set to 1.
func (c *classes) kept(class int32, axes []int) int32 {
	key := c.key(class)
	for _, a := range axes {
		key.dims[a] = one
	}
	return c.intern(key, -1)
}

// stripped is a class without its leading dims of size 1.
func (c *classes) stripped(class int32) int32 {
	key := c.key(class)
	n := 0
	for n < key.rank && key.dims[n] == one {
		n++
	}
	if n == 0 {
		return class
	}
	short := dimKey{rank: key.rank - n}
	copy(short.dims[:], key.dims[n:key.rank])
	return c.intern(short, -1)
}

func (c *classes) key(class int32) dimKey {
	key := dimKey{rank: len(c.dims[class])}
	copy(key.dims[:], c.dims[class])
	return key
}

// broadcasts reports that a value of class to can be read by broadcasting at every point of class
// from, at all sizes.
func (c *classes) broadcasts(from, to int32) bool {
	f, t := c.dims[from], c.dims[to]
	if len(t) > len(f) {
		return false
	}
	for i, v := range t {
		if v != one && v != f[len(f)-len(t)+i] {
			return false
		}
	}
	return true
}
