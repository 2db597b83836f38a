package native

import (
	"container/heap"
	"slices"

	"github.com/millrace-go/millrace/ir"
)

// A core executes instructions out of order, from a queue of limited length. Instructions that wait
// for a division fill this queue, and the core cannot reach independent instructions behind them.
// So independent instructions are placed first.

// divisionWait is how long a step's divisions take, in instructions of a step.
const divisionWait = 24

// waitless returns an order of the body in which instructions that do not wait for a division
// precede those that do. It returns nil if there are no divisions. It also returns nil if an index
// may be a fault, since faults are recorded in the order of the body.
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
	q := c.newWaitless()
	order := make([]int, 0, len(body))
	for now := 0; len(order) < len(body); {
		i := q.next(now)
		now = max(now, q.ready[i])
		order = append(order, i)
		if !c.need[i] || c.level[i] != perPoint || body[i].Op == ir.Const {
			q.done(i, 0) // it takes no time
			continue
		}
		end := now
		if body[i].Op == ir.FDiv || body[i].Op == ir.Sqrt {
			end += divisionWait
		}
		q.done(i, end)
		now++
	}
	return order
}

// waitless holds the instructions whose operands are placed: in able those that need not wait, in
// the order of the body; in waiting the others, by the time at which they are ready.
type waitless struct {
	ready   []int   // by instruction: when its operands are ready
	missing []int   // by instruction: how many of its operands are not placed
	readers [][]int // by instruction
	able    instrHeap
	waiting instrHeap
}

func (c *code) newWaitless() *waitless {
	body := c.k.Body
	q := &waitless{ready: make([]int, len(body)), missing: make([]int, len(body)), readers: make([][]int, len(body))}
	q.able.before = func(i, j int) bool { return i < j }
	q.waiting.before = func(i, j int) bool {
		return q.ready[i] < q.ready[j] || q.ready[i] == q.ready[j] && i < j
	}
	for i, in := range body {
		for k, a := range in.Args {
			if a != ir.None && !slices.Contains(in.Args[:k], a) {
				q.missing[i]++
				q.readers[a] = append(q.readers[a], i)
			}
		}
		if q.missing[i] == 0 {
			heap.Push(&q.waiting, i)
		}
	}
	return q
}

// next takes the first instruction that need not wait at time now, else the one that waits least.
func (q *waitless) next(now int) int {
	for q.waiting.Len() > 0 && q.ready[q.waiting.list[0]] <= now {
		heap.Push(&q.able, heap.Pop(&q.waiting))
	}
	if q.able.Len() > 0 {
		return heap.Pop(&q.able).(int)
	}
	return heap.Pop(&q.waiting).(int)
}

// done makes the readers of instruction i wait until time end.
func (q *waitless) done(i, end int) {
	for _, r := range q.readers[i] {
		q.ready[r] = max(q.ready[r], end)
		if q.missing[r]--; q.missing[r] == 0 {
			heap.Push(&q.waiting, r)
		}
	}
}

// instrHeap is a heap of indices into the body.
type instrHeap struct {
	list   []int
	before func(i, j int) bool
}

func (h *instrHeap) Len() int           { return len(h.list) }
func (h *instrHeap) Less(i, j int) bool { return h.before(h.list[i], h.list[j]) }
func (h *instrHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *instrHeap) Push(i any)         { h.list = append(h.list, i.(int)) }
func (h *instrHeap) Pop() any {
	n := len(h.list) - 1
	i := h.list[n]
	h.list = h.list[:n]
	return i
}
