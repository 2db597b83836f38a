package autodiff

import (
	"fmt"

	"github.com/millrace-go/millrace/internal/adhook"
	"github.com/millrace-go/millrace/internal/operror"
)

// Seal ends the following of a Recording's function. The values that its nodes keep belong to a
// scope that is about to end, and later runs follow nothing. Each result that the function computed
// gets a new node: it leads where the old node led, and gives an error when a gradient comes to it.
// Other results keep their nodes.
func (*node) Seal(after uint64, ts []*tensor) (nodes []mark, made []bool) {
	by := operror.TrailHere()
	nodes, made = make([]mark, len(ts)), make([]bool, len(ts))
	var all []*node
	for i, t := range ts {
		l := linkOf(t)
		if l.node == nil {
			continue
		}
		if nodes[i] = root.Node(t); l.outside(after) {
			continue
		}
		edges, inner := behind([]link{l}, after)
		n := &node{where: by, group: &group{name: "recording", results: 1, in: edges, back: noWay, sealed: true}}
		for _, x := range inner {
			n.group.lost = n.group.lost || x.givenUp()
		}
		all = append(all, inner...)
		n.seq = adhook.Count.Add(1)
		nodes[i], made[i] = n, true
	}
	severed(all, &by)
	return nodes, made
}

func noWay(_ *walk, n *node, _ []*tensor) error {
	return fmt.Errorf("%w: the loss depends on a watched tensor through the Recording that ran first at %s, which is not differentiated: "+
		"take gradients in its function, or Detach its result", ErrGraph, n.at())
}

// Sealed reports the node of a Recording's result. One node serves all runs.
func (n *node) Sealed() bool { return n != nil && n.group != nil && n.group.sealed }
