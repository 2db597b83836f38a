package autodiff

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/hostapi"
	"github.com/millrace-go/millrace/internal/operror"
)

// group is a function of the program whose gradient is not found op by op. Custom gets it from a
// function of the program; Checkpoint calls the function again.
type group struct {
	name    string
	results int
	back    func(b *walk, n *node, ds []*tensor) error
	in      []link    // links of the operands
	held    []*tensor // the tensors that back needs

	// For a Recording's result:
	sealed bool
	lost   bool // a Grad in the Recording's function gave up nodes that lead to the result
}

func (g *group) release() {
	letGo(g.held...)
	g.held = nil
}

// grouped makes new handles of outs, which are not followed, as results of one node.
func grouped(n *node, outs []*tensor) []*tensor {
	rs := make([]*tensor, len(outs))
	for i, t := range outs {
		switch {
		case t == nil:
			rs[i] = refuse(n.group.name, "result %d of the function is nil", i)
			continue
		case t.Err() != nil || !t.DType().IsFloat():
			rs[i] = t
			continue
		}
		rs[i] = unfollowed(t)
		root.Carry(rs[i], &output{link{n, i}})
	}
	return rs
}

// unfollowed is a new handle of t's value that has no node.
func unfollowed(t *tensor) *tensor {
	p := root.Plain(t)
	defer root.Drop(p)
	return p.Reshape(p.Shape()...)
}

// refuse is a tensor that carries an error.
func refuse(op, format string, args ...any) *tensor {
	return hostapi.Fail(op, fmt.Errorf("%w: "+format, append([]any{ErrGraph}, args...)...), nil).(*tensor)
}

// made are the results that a function computed from followed tensors after the node number after.
// Its operands and older tensors are not among them.
func made(outs, in []*tensor, after uint64) (own []*tensor) {
	for _, t := range outs {
		if l := linkOf(t); l.node != nil && !l.leaf() && l.seq > after && !slices.Contains(in, t) {
			own = append(own, t)
		}
	}
	return own
}

// Custom returns forward's results for in, with a gradient that backward computes. It is PyTorch's
// torch.autograd.Function and JAX's jax.custom_vjp.
//
// Ops within forward are not followed. backward gets in, the results out, and the gradients d by
// the results, with their shapes and dtypes; d[k] is zeros if nothing was computed from result k.
// It returns one gradient for each of in, of its shape and dtype, or nil for zeros: Σ_k
// (∂out[k]/∂in[i])ᵀ·d[k]. Ops within backward are followed only if the gradients are
// ([Options].Follow). If none of in is watched, the results are simply forward's. Results that are
// not floats have no gradient.
//
// If a function is nil, or forward returns a nil tensor, the result carries [ErrGraph]. If backward
// returns another number of gradients (ErrGraph), or one of another shape or dtype (ErrShape), Grad
// returns the error.
//
// Memory: in and the results stay alive until a Grad gives up the graph.
func Custom(forward func(in []*millrace.Tensor) []*millrace.Tensor,
	backward func(in, out, d []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	if forward == nil || backward == nil {
		return []*tensor{refuse("custom", "a function is nil")}
	}
	plain := plainly(in)
	outs := slices.Clone(forward(plain))
	for i, t := range outs {
		if t != nil && slices.Contains(plain, t) { // this handle ends here
			outs[i] = unfollowed(t)
		}
	}
	drop(plain...)
	if !slices.ContainsFunc(in, Watched) {
		return outs
	}
	nested.Add(1)
	n := &node{seq: adhook.Count.Add(1), where: operror.TrailHere()}
	g := &group{name: "custom", results: len(outs)}
	n.group = g
	for _, t := range in {
		g.in = append(g.in, linkOf(t))
		g.held = append(g.held, hold(t))
	}
	rs := grouped(n, outs)
	for _, r := range rs {
		g.held = append(g.held, hold(r))
	}
	k := len(in)
	g.back = func(b *walk, n *node, ds []*tensor) error {
		args := slices.Clone(g.held)
		var temps []*tensor
		defer func() { letGo(temps...) }()
		if !b.Follow {
			args = plainly(args)
			temps = slices.Clone(args)
		}
		full := slices.Clone(ds)
		for i, d := range full {
			switch {
			case d == nil && args[k+i].Err() != nil:
				full[i] = args[k+i]
			case d == nil:
				full[i] = zerosLike(args[k+i], args[k+i].Shape())
				if !b.Follow { // a function within backward may use it later
					temps = append(temps, full[i])
				}
			}
		}
		back := backward(args[:k], args[k:], full)
		if len(back) != k {
			return fmt.Errorf("%w: custom at %s: backward returned %d gradients for %d operands", ErrGraph, n.at(), len(back), k)
		}
		more := g.in
		for i, d := range back {
			if d == nil || more[i].node == nil {
				continue
			}
			if d.Err() == nil && (d.DType() != args[i].DType() || !slices.Equal(d.Shape(), args[i].Shape())) {
				return fmt.Errorf("%w: custom at %s: backward returned %v of %v for operand %d, which is %v of %v",
					millrace.ErrShape, n.at(), d.Shape(), d.DType(), i, args[i].Shape(), args[i].DType())
			}
			if !b.Follow && (Watched(d) || slices.Contains(args, d)) {
				d = unfollowed(d)
			} else {
				d = hold(d)
			}
			b.give(more[i], d, nil)
		}
		if !b.Keep {
			b.spend(n)
		}
		return nil
	}
	return rs
}

// plainly are handles of the same values on which ops are not followed.
func plainly(ts []*tensor) []*tensor {
	ps := make([]*tensor, len(ts))
	for i, t := range ts {
		if t != nil {
			ps[i] = root.Plain(t)
		}
	}
	return ps
}

// hold is one more handle of t, nil if t is nil.
func hold(t *tensor) *tensor {
	if t == nil {
		return nil
	}
	return root.Hold(t)
}
