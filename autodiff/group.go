package autodiff

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/operror"
)

// group is a function of the program whose derivative is found in another way than op by
// op: Custom is told it, Checkpoint computes the function again.
type group struct {
	name    string
	results int
	back    func(b *walk, n *node, ds []*tensor) error
	held    []*tensor // what back needs
}

func (g *group) release() {
	letGo(g.held...)
	g.held = nil
}

// grouped gives outs, which are not followed, to one node; each result is a new handle.
func grouped(n *node, outs []*tensor) []*tensor {
	rs := make([]*tensor, len(outs))
	for i, t := range outs {
		switch {
		case t.Err() != nil || !t.DType().IsFloat():
			rs[i] = t
			continue
		}
		p := follow.Plain(t).(*tensor)
		rs[i] = p.Reshape(p.Shape()...)
		follow.Drop(p)
		follow.Carry(rs[i], &output{link{n, i}})
	}
	return rs
}

// Custom is forward's results for in, with a derivative of the program's own: backward is
// given in, the results, and the derivatives by these (zeros for a result that nothing was
// computed from), and returns that by each of in, of its shape and dtype; nil stands for
// zeros. What forward computes is not followed, nor, unless derivatives are asked for that
// are followed themselves, what backward does.
func Custom(forward func(in []*millrace.Tensor) []*millrace.Tensor,
	backward func(in, out, d []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	plain := make([]*tensor, len(in))
	for i, t := range in {
		plain[i] = follow.Plain(t).(*tensor)
	}
	outs := forward(plain)
	drop(plain...)
	if !slices.ContainsFunc(in, Watched) {
		return outs
	}
	n := &node{seq: recorded.Add(1), where: operror.TrailHere()}
	g := &group{name: "custom", results: len(outs)}
	n.group = g
	for _, t := range in {
		n.more = append(n.more, linkOf(t))
		g.held = append(g.held, follow.Hold(t).(*tensor))
	}
	rs := grouped(n, outs)
	for _, r := range rs {
		g.held = append(g.held, follow.Hold(r).(*tensor))
	}
	k := len(in)
	g.back = func(b *walk, n *node, ds []*tensor) error {
		args := slices.Clone(g.held)
		var temps []*tensor
		if !b.Follow {
			for i, t := range args {
				args[i] = follow.Plain(t).(*tensor)
			}
			temps = args
		}
		full := slices.Clone(ds)
		for i, d := range full {
			if d == nil {
				full[i] = zerosLike(args[k+i], args[k+i].Shape())
				temps = append(temps, full[i])
			}
		}
		back := backward(args[:k], args[k:], full)
		if len(back) != k {
			return fmt.Errorf("%w: custom at %s: backward gave %d derivatives for %d operands", ErrGraph, n.at(), len(back), k)
		}
		more := n.more
		for i, d := range back {
			if d == nil || more[i].node == nil {
				continue
			}
			if d.Err() == nil && (d.DType() != args[i].DType() || !slices.Equal(d.Shape(), args[i].Shape())) {
				return fmt.Errorf("%w: custom at %s: backward gave %v of %v for operand %d, which is %v of %v",
					millrace.ErrShape, n.at(), d.Shape(), d.DType(), i, args[i].Shape(), args[i].DType())
			}
			b.give(more[i], follow.Hold(d).(*tensor), nil)
		}
		letGo(temps...)
		if !b.Keep {
			b.spend(n)
		}
		return nil
	}
	return rs
}

// Checkpoint is f's results for in, of which nothing is kept but in: when derivatives are
// asked for, f is called once more, and must do then what it did. What f uses besides in
// must be there still. Derivatives go to watched tensors that f uses besides in, too.
func Checkpoint(f func(in []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	before := recorded.Load()
	outs := f(in)
	if !slices.ContainsFunc(outs, Watched) {
		return outs
	}
	n := &node{where: operror.TrailHere()}
	g := &group{name: "checkpoint", results: len(outs)}
	n.group = g
	n.more = cut(outs, before, n.where)
	n.seq = recorded.Add(1)
	for _, t := range in {
		g.held = append(g.held, follow.Hold(t).(*tensor))
	}
	rs := grouped(n, outs)
	for i, t := range outs {
		if rs[i] != t {
			follow.LetGo(t)
		}
	}
	g.back = func(b *walk, n *node, ds []*tensor) error {
		again := f(g.held)
		if len(again) != len(ds) {
			return fmt.Errorf("%w: checkpoint at %s: the function had %d results and has %d", ErrGraph, n.at(), len(ds), len(again))
		}
		for i, t := range again {
			if ds[i] == nil {
				continue
			}
			if err := t.Err(); err != nil {
				return fmt.Errorf("checkpoint at %s: %w", n.at(), err)
			}
			b.give(linkOf(t), follow.Hold(ds[i]).(*tensor), nil)
		}
		if !b.Keep {
			b.spend(n)
		}
		return nil
	}
	return rs
}

// cut gives up the nodes recorded after a number that results come from, and returns the
// links from those to older ones.
func cut(outs []*tensor, after uint64, by operror.Trail) (edges []link) {
	seen := map[*node]bool{}
	var stack []*node
	reach := func(l link) {
		switch {
		case l.node == nil:
		case l.seq <= after || l.leaf():
			if !slices.Contains(edges, l) {
				edges = append(edges, l)
			}
		case !seen[l.node]:
			seen[l.node] = true
			stack = append(stack, l.node)
		}
	}
	for _, t := range outs {
		reach(linkOf(t))
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, l := range n.operands() {
			reach(l)
		}
		n.release(by)
		n.in, n.more = [3]link{}, nil
	}
	return edges
}
