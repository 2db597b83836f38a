package native

import (
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// What waits for a division fills the queue from which a core takes what it can do at
// once, and behind it what does not wait is not seen. So that comes first.

// divisionWait is how long a step's divisions take, as so many instructions of a step.
const divisionWait = 24

// waitless is an order of the body in which what does not wait for divisions goes before
// what does; nil where there is none, or where an index may be a fault: those are noted in
// the order of the body.
func (c *code) waitless() []int {
	body := c.k.Body
	divides := false
	for i, in := range body {
		switch in.Op {
		case ir.FDiv, ir.Sqrt:
			divides = divides || c.need[i] && c.level[i] == perPoint
		case ir.LoadAt:
			return nil
		}
	}
	if !divides {
		return nil
	}
	ready, done := make([]int, len(body)), make([]bool, len(body))
	order := make([]int, 0, len(body))
	for now, first := 0, 0; first < len(body); {
		best := -1
		for i := first; i < len(body); i++ {
			if done[i] || slices.ContainsFunc(body[i].Args[:], func(a ir.Ref) bool { return a != ir.None && !done[a] }) {
				continue
			}
			if best < 0 || ready[i] < ready[best] {
				best = i
			}
			if ready[i] <= now {
				best = i
				break
			}
		}
		now = max(now, ready[best])
		order, done[best] = append(order, best), true
		for first < len(body) && done[first] {
			first++
		}
		if !c.need[best] || c.level[best] != perPoint || body[best].Op == ir.Const {
			continue // takes no time
		}
		end := now
		if body[best].Op == ir.FDiv || body[best].Op == ir.Sqrt {
			end += divisionWait
		}
		now++
		for i := best + 1; i < len(body); i++ {
			if slices.Contains(body[i].Args[:], ir.Ref(best)) {
				ready[i] = max(ready[i], end)
			}
		}
	}
	return order
}
