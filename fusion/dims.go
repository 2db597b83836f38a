package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// dimSet says which dims of a segment's tensors are equal in every segment of
// the same relative form, not only in the one at hand. It is a union-find over
// one variable per dim; each node contributes the predicates that are part of
// its relative form (this operand dim equals that result dim, this one is 1).
type dimSet struct {
	parent []int32
	first  []int32 // variable of each tensor's dim 0
}

// one is the variable of dims that are 1 by structure: an operand dim that
// broadcasts, a reduced dim that is kept.
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

// union keeps the smaller variable as representative, so that "is 1" wins and
// the outcome does not depend on the order of unions.
func (d *dimSet) union(a, b int32) {
	a, b = d.find(a), d.find(b)
	if a > b {
		a, b = b, a
	}
	d.parent[b] = a
}

// relate adds what node n's relative form says about dims.
func (d *dimSet) relate(seg *segment.Segment, n int) {
	node := &seg.Nodes[n]
	switch node.Op.Class() {
	case ir.ClassElementwise:
		for _, a := range node.Args[:node.NArgs] {
			if !a.Scalar {
				d.broadcast(seg, a.ID, seg.Out[n])
			}
		}
	case ir.ClassView, ir.ClassReduce:
		d.view(seg, node, node.Args[0].ID, seg.Out[n])
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
		eachGroup(from, to, func(f, t []int) {
			if len(f) == 1 && len(t) == 1 {
				d.union(a+int32(f[0]), o+int32(t[0]))
			}
		})
	case ir.Sum, ir.Max:
		k := int32(0)
		for i := range from {
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
}

// eachGroup takes a reshape apart into the smallest runs of dims with equal
// products and calls f with the dim numbers of each run. Dims of size 1 belong
// to no run. Neither shape has a dim of size 0.
func eachGroup(from, to ir.Shape, f func(from, to []int)) {
	var fs, ts []int
	p, q := 1, 1
	i, j := 0, 0
	for {
		for i < len(from) && from[i] == 1 {
			i++
		}
		for j < len(to) && to[j] == 1 {
			j++
		}
		switch {
		case p == q && p > 1:
			f(fs, ts)
			fs, ts, p, q = fs[:0], ts[:0], 1, 1
		case p <= q && i < len(from):
			fs = append(fs, i)
			p *= from[i]
			i++
		case j < len(to):
			ts = append(ts, j)
			q *= to[j]
			j++
		default:
			return
		}
	}
}

func has(axes []int, i int) bool {
	for _, a := range axes {
		if a == i {
			return true
		}
	}
	return false
}

// classes numbers the shapes of a segment so that two tensors of one class
// have equal shapes whatever the sizes.
type classes struct {
	of   []int32   // class of each tensor
	dims [][]int32 // dim representatives of each class
	rep  []int32   // lowest tensor of each class
}

type dimKey struct {
	rank int
	dims [ir.MaxRank]int32
}

func newClasses(seg *segment.Segment, d *dimSet) *classes {
	c := &classes{of: make([]int32, len(seg.Tensors))}
	known := make(map[dimKey]int32)
	for t := range seg.Tensors {
		key := dimKey{rank: len(seg.Tensors[t].Shape)}
		for i := range key.rank {
			key.dims[i] = d.find(d.first[t] + int32(i))
		}
		id, ok := known[key]
		if !ok {
			id = int32(len(c.rep))
			known[key] = id
			c.rep = append(c.rep, int32(t))
			c.dims = append(c.dims, append([]int32(nil), key.dims[:key.rank]...))
		}
		c.of[t] = id
	}
	return c
}

// broadcasts reports that a value of class to can be read at every point of
// class from by broadcasting, whatever the sizes.
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
