package fusion

import (
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Work is the number of lowered instructions that each node of a segment executes for each element
// of its result; 0 for a view.
func Work(seg *segment.Segment) []int {
	w := make(weights)
	work := make([]int, len(seg.Nodes))
	for n := range seg.Nodes {
		if seg.Nodes[n].Op.Class() != ir.ClassView {
			work[n] = w.node(seg, &seg.Nodes[n])
		}
	}
	return work
}

// Costs returns what the search assumes of a device: seconds for an instruction on one element, and
// for a byte that is read or written.
func Costs(c *runtime.Caps) (op, byte float64) {
	m := newModel(c)
	return m.op, 1 / m.bandwidth
}
