package autodiff

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/operror"
)

// Checkpoint returns f's results for in and keeps only in for the gradient, not the values within
// f. It is PyTorch's torch.utils.checkpoint and JAX's jax.checkpoint. When a gradient is taken, f
// is called again with in, and must do what it did the first time. Other tensors that f uses must
// still exist then. Watched ones among them get gradients, too.
//
// The shapes, dtypes and errors of the results are those of f. If f is nil or returns a nil tensor,
// the result carries [ErrGraph]. If f does something else in its second call, Grad returns
// ErrGraph. To find that, it compares ops, shapes, scalars, seeds, data from Go, and the values
// that watched tensors have, but not the values of other tensors from outside f. So f must not draw
// seeds from a generator, nor dropout's masks from a pass of package nn. nn.Checkpoint can: it
// draws the same masks again.
//
// Cost: one more forward pass of f for each backward pass, instead of the memory for f's inner
// values.
func Checkpoint(f func(in []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	if f == nil {
		return []*tensor{refuse("checkpoint", "the function is nil")}
	}
	var held []*tensor // hold them before f sets one of them
	for _, t := range in {
		held = append(held, hold(t))
	}
	before := adhook.Count.Load()
	outs := signed(f, in)
	inside := func(t *tensor) bool { l := linkOf(t); return l.node != nil && !l.outside(before) }
	if !slices.ContainsFunc(outs, inside) { // nothing is kept, so nothing can be dropped
		letGo(held...)
		return outs
	}
	nested.Add(1)
	by := operror.TrailHere()
	n := &node{where: by}
	g := &group{name: "checkpoint", results: len(outs), held: held}
	n.group = g
	own := made(outs, in, before)
	rs := make([]*tensor, len(outs))
	signs := make([]uint64, len(outs))
	for i, t := range outs {
		switch l := linkOf(t); {
		case t == nil:
			rs[i] = refuse(g.name, "result %d of the function is nil", i)
		case l.node == nil:
			rs[i] = t
		case inside(t): // if f returns one tensor twice, both are the same result
			signs[i] = root.Signature(t)
			rs[i] = unfollowed(t)
			root.Carry(rs[i], &output{link{n, slices.Index(outs, t)}})
		default: // not computed by f: gradients go to its own node
			rs[i] = unfollowed(t)
			root.Carry(rs[i], root.Node(t))
		}
	}
	g.in = cut(slices.DeleteFunc(slices.Clone(outs), func(t *tensor) bool { return !inside(t) }), before, &by)
	n.seq = adhook.Count.Add(1)
	letGo(own...)
	g.back = func(b *walk, n *node, ds []*tensor) error {
		r := &recall{n: n, after: adhook.Count.Load()}
		n.stay()
		b.recalls = append(b.recalls, r)
		within := nested.Load()
		again := signed(f, g.held)
		r.made = made(again, g.held, r.after)
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
			if root.Signature(t) != signs[i] {
				return fmt.Errorf("%w: checkpoint at %s: the second call of the function did something else: result %d comes from other ops, "+
					"numbers, seeds or weights. Draw seeds before it; nn.Checkpoint draws the random numbers of a pass again", ErrGraph, n.at(), i)
			}
			b.give(linkOf(t), root.Hold(ds[i]), nil)
		}
		if nested.Load() == within { // nothing within f will be called again
			b.passed(r.after)
		}
		return nil
	}
	return rs
}

// signed are f's results for in, with signatures of how they were computed.
func signed(f func(in []*tensor) []*tensor, in []*tensor) []*tensor {
	adhook.Signing.Add(1)
	defer adhook.Signing.Add(-1)
	return f(in)
}

// recall is a Checkpoint whose function was called again. Functions within that function are called
// later, when the walk comes to their nodes. They may use the tensors that the function was given
// or made. So these stay until the walk has passed the nodes that the second call recorded.
type recall struct {
	n     *node
	after uint64    // its nodes have larger numbers
	made  []*tensor // results that the function computed
}

// nested counts the recorded functions that may be called again, by Custom and Checkpoint.
var nested atomic.Uint64

// passed ends the recalls whose nodes have all been visited. next is the number of the next node.
func (b *walk) passed(next uint64) {
	for k := len(b.recalls) - 1; k >= 0 && next <= b.recalls[k].after; k-- {
		r := b.recalls[k]
		b.recalls = b.recalls[:k]
		b.end(r, !b.Keep)
	}
}

func (b *walk) end(r *recall, spend bool) {
	if !b.Follow { // with Follow, the gradients' own graph may call those functions
		letGo(r.made...)
	}
	if spend {
		b.spend(r.n)
	}
	r.n.leave()
}

// cut gives up the nodes recorded after number after that results come from. It returns the links
// from them to older nodes.
func cut(outs []*tensor, after uint64, by *operror.Trail) (edges []link) {
	edges, inner := behind(linksOf(outs), after)
	severed(inner, by)
	return edges
}

// within are the nodes recorded after number after that results come from. They must be listed
// before derivatives are taken: taking these may cut links to some of the nodes.
func within(outs []*tensor, after uint64) []*node {
	_, inner := behind(linksOf(outs), after)
	return inner
}

func linksOf(ts []*tensor) []link {
	links := make([]link, len(ts))
	for i, t := range ts {
		links[i] = linkOf(t)
	}
	return links
}

// outside reports a node that was not made by following after a number: an older node, a watched
// tensor, or a Recording's result.
func (l link) outside(after uint64) bool { return l.seq <= after || l.leaf() || l.Sealed() }

// behind are the nodes recorded after number after that links come from (inner), and the links from
// them to other nodes (edges).
func behind(from []link, after uint64) (edges []link, inner []*node) {
	seen := map[*node]bool{}
	known := map[link]bool{}
	reach := func(l link) {
		switch {
		case l.node == nil:
		case l.outside(after):
			if !known[l] {
				known[l] = true
				edges = append(edges, l)
			}
		case !seen[l.node]:
			seen[l.node] = true
			inner = append(inner, l.node)
		}
	}
	for _, l := range from {
		reach(l)
	}
	var links []link
	for i := 0; i < len(inner); i++ {
		links = inner[i].operands(links[:0])
		for _, l := range links {
			reach(l)
		}
	}
	return edges, inner
}

// severed gives up nodes and removes their links.
func severed(nodes []*node, by *operror.Trail) {
	for _, n := range nodes {
		n.mu.Lock()
		n.ended = n.ended || !n.gone
		n.mu.Unlock()
		n.release(by)
		n.cut()
	}
}
