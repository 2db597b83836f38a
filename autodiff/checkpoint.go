package autodiff

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/operror"
)

// Checkpoint is f's results for in, of which nothing is kept but in: PyTorch's
// torch.utils.checkpoint. When gradients are asked for, f is called once more, and must do
// then what it did. What f uses besides in must be there still. Gradients go to watched
// tensors that f uses besides in, too.
//
// Where the second call does something else, the gradient is [ErrGraph]: it compares ops,
// shapes, scalars, seeds, data from Go and which values watched tensors have, but not what
// other tensors from outside have. So f must not draw seeds from a generator, nor dropout's
// masks from a pass of package nn: nn.Checkpoint draws these again.
func Checkpoint(f func(in []*millrace.Tensor) []*millrace.Tensor, in ...*millrace.Tensor) []*millrace.Tensor {
	if f == nil {
		return []*tensor{refuse("checkpoint", "nil function")}
	}
	var held []*tensor // before f sets one of them
	for _, t := range in {
		held = append(held, hold(t))
	}
	before := recorded.Load()
	outs := signed(f, in)
	inside := func(t *tensor) bool { l := linkOf(t); return l.node != nil && !l.outside(before) }
	if !slices.ContainsFunc(outs, inside) { // there is nothing to forget
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
		case inside(t): // one result twice is one to what comes after
			signs[i] = follow.Signature(t)
			rs[i] = unfollowed(t)
			follow.Carry(rs[i], &output{link{n, slices.Index(outs, t)}})
		default: // not f's: gradients add up as if it were not handed on
			rs[i] = unfollowed(t)
			follow.Carry(rs[i], follow.Node(t))
		}
	}
	g.in = cut(slices.DeleteFunc(slices.Clone(outs), func(t *tensor) bool { return !inside(t) }), before, &by)
	n.seq = recorded.Add(1)
	letGo(own...)
	g.back = func(b *walk, n *node, ds []*tensor) error {
		r := &recall{n: n, after: recorded.Load()}
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
			if follow.Signature(t) != signs[i] {
				return fmt.Errorf("%w: checkpoint at %s: the function did something else when it was called again: result %d comes of other ops, "+
					"numbers, seeds or weights. Draw seeds before it; nn.Checkpoint draws the random numbers of a pass again", ErrGraph, n.at(), i)
			}
			b.give(linkOf(t), follow.Hold(ds[i]).(*tensor), nil)
		}
		if nested.Load() == within { // nothing more is called
			b.passed(r.after)
		}
		return nil
	}
	return rs
}

// signed are f's results for in, with signatures.
func signed(f func(in []*tensor) []*tensor, in []*tensor) []*tensor {
	follow.Signing.Add(1)
	defer follow.Signing.Add(-1)
	return f(in)
}

// recall is a Checkpoint whose function was called again. Functions within it are called
// after it, when the walk comes to their nodes, and may use what it was given and what it
// made: both stay until the walk has passed the nodes that it recorded.
type recall struct {
	n     *node
	after uint64    // the nodes have larger numbers
	made  []*tensor // results of the function's own
}

// nested counts the functions that may be called again: Custom's and Checkpoint's.
var nested atomic.Uint64

// passed ends recalls of which every node was visited, if a node with this number is next.
func (b *walk) passed(next uint64) {
	for k := len(b.recalls) - 1; k >= 0 && next <= b.recalls[k].after; k-- {
		r := b.recalls[k]
		b.recalls = b.recalls[:k]
		b.end(r, !b.Keep)
	}
}

func (b *walk) end(r *recall, spend bool) {
	if !b.Follow { // else the gradients' own graph may call those functions
		letGo(r.made...)
	}
	if spend {
		b.spend(r.n)
	}
	r.n.leave()
}

// cut gives up the nodes recorded after a number that results come from, and returns the
// links from those to older ones.
func cut(outs []*tensor, after uint64, by *operror.Trail) (edges []link) {
	edges, inner := behind(linksOf(outs), after)
	severed(inner, by)
	return edges
}

// within are the nodes recorded after a number that results come from. Derivatives that are
// taken through some of them cut off others.
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

// outside reports a node that is no part of what was followed after a number: an older
// one, a watched tensor, or the end of a Recording.
func (l link) outside(after uint64) bool { return l.seq <= after || l.leaf() || l.sealed() }

// behind are the nodes recorded after a number that links come from, and the links from
// those to others.
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

// severed gives up nodes, and has them lead nowhere.
func severed(nodes []*node, by *operror.Trail) {
	for _, n := range nodes {
		n.mu.Lock()
		n.ended = n.ended || !n.gone
		n.mu.Unlock()
		n.release(by)
		n.cut()
	}
}
