package autodiff

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/operror"
)

func init() {
	follow.Count = recorded.Load
	follow.Seal = seal
	follow.Sealed = func(n any) bool { return asLink(n).sealed() }
}

// seal ends the following of a Recording's function. The values that its nodes keep belong to a
// scope that is about to end, and later runs follow nothing. Each result that the function computed
// gets a new node: it leads where the old node led, and gives an error when a gradient comes to it.
// Other results keep their nodes.
func seal(after uint64, ts []any) (nodes []any, made []bool) {
	by := operror.TrailHere()
	nodes, made = make([]any, len(ts)), make([]bool, len(ts))
	var all []*node
	for i, t := range ts {
		l := linkOf(t.(*tensor))
		if l.node == nil {
			continue
		}
		if nodes[i] = follow.Node(t); l.outside(after) {
			continue
		}
		edges, inner := behind([]link{l}, after)
		n := &node{where: by, group: &group{name: "recording", results: 1, in: edges, back: noWay, sealed: true}}
		for _, x := range inner {
			n.group.lost = n.group.lost || x.givenUp()
		}
		all = append(all, inner...)
		n.seq = recorded.Add(1)
		nodes[i], made[i] = n, true
	}
	severed(all, &by)
	return nodes, made
}

func noWay(_ *walk, n *node, _ []*tensor) error {
	return fmt.Errorf("%w: the loss depends on a watched tensor by way of the Recording that ran first at %s, which is not differentiated: "+
		"take gradients in its function, or Detach its result", ErrGraph, n.at())
}

// sealed reports the node of a Recording's result. One node serves all runs.
func (l link) sealed() bool { return l.node != nil && l.group != nil && l.group.sealed }
