package autodiff

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/operror"
)

// group is a function of the program whose gradient is found in another way than op by
// op: Custom is told it, Checkpoint computes the function again.
type group struct {
	name    string
	results int
	back    func(b *walk, n *node, ds []*tensor) error
	in      []link    // of the operands
	held    []*tensor // what back needs

	// Of a Recording's result.
	sealed bool
	lost   bool // Grad in its function gave up where it leads
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
		case t == nil:
			rs[i] = refuse(n.group.name, "result %d of the function is nil", i)
			continue
		case t.Err() != nil || !t.DType().IsFloat():
			rs[i] = t
			continue
		}
		rs[i] = unfollowed(t)
		follow.Carry(rs[i], &output{link{n, i}})
	}
	return rs
}

// unfollowed is a new handle of t's value, computed from nothing.
func unfollowed(t *tensor) *tensor {
	p := follow.Plain(t).(*tensor)
	defer follow.Drop(p)
	return p.Reshape(p.Shape()...)
}

// refuse is a tensor that carries an error.
func refuse(op, format string, args ...any) *tensor {
	return handle.Fail(op, fmt.Errorf("%w: "+format, append([]any{ErrGraph}, args...)...), nil).(*tensor)
}

// made are those of a function's results that it made of followed tensors after a number
// of recording: neither its operands nor anything that was there before.
func made(outs, in []*tensor, after uint64) (own []*tensor) {
	for _, t := range outs {
		if l := linkOf(t); l.node != nil && !l.leaf() && l.seq > after && !slices.Contains(in, t) {
			own = append(own, t)
		}
	}
	return own
}

// Custom is forward's results for in, with a gradient of the program's own: backward is
// given in, the results, and the gradients by these (zeros for a result that nothing was
// computed from), and returns that by each of in, of its shape and dtype; nil stands for
// zeros. What forward computes is not followed, nor, unless gradients are asked for that
// are followed themselves, what backward does.
func Custom(forward func(in []*millrace.Tensor) []*millrace.Tensor,
	backward func(in, out, d []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	if forward == nil || backward == nil {
		return []*tensor{refuse("custom", "nil function")}
	}
	plain := plainly(in)
	outs := slices.Clone(forward(plain))
	for i, t := range outs {
		if t != nil && slices.Contains(plain, t) { // which ends here
			outs[i] = unfollowed(t)
		}
	}
	drop(plain...)
	if !slices.ContainsFunc(in, Watched) {
		return outs
	}
	nested.Add(1)
	n := &node{seq: recorded.Add(1), where: operror.TrailHere()}
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
				if !b.Follow { // else a function within backward may use it later
					temps = append(temps, full[i])
				}
			}
		}
		back := backward(args[:k], args[k:], full)
		if len(back) != k {
			return fmt.Errorf("%w: custom at %s: backward gave %d gradients for %d operands", ErrGraph, n.at(), len(back), k)
		}
		more := g.in
		for i, d := range back {
			if d == nil || more[i].node == nil {
				continue
			}
			if d.Err() == nil && (d.DType() != args[i].DType() || !slices.Equal(d.Shape(), args[i].Shape())) {
				return fmt.Errorf("%w: custom at %s: backward gave %v of %v for operand %d, which is %v of %v",
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

// plainly are handles of which ops are not followed.
func plainly(ts []*tensor) []*tensor {
	ps := make([]*tensor, len(ts))
	for i, t := range ts {
		if t != nil {
			ps[i] = follow.Plain(t).(*tensor)
		}
	}
	return ps
}

// hold is one more handle of t, or nil.
func hold(t *tensor) *tensor {
	if t == nil {
		return nil
	}
	return follow.Hold(t).(*tensor)
}
