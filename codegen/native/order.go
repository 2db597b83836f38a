package native

import (
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
		now = max(now, int(q.ready[i]))
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

// waitless holds the instructions whose operands are placed, the first to take first: in able those
// that need not wait, in the order of the body; in waiting the others, by the time at which they
// are ready.
type waitless struct {
	ready         []int32  // by instruction: when its operands are ready
	missing       []int32  // by instruction: how many of its operands are not placed
	first, more   []int32  // by instruction: its first reader; by reader and operand: the next reader. They are counted from 1
	able, waiting []uint64 // the time in the upper half, the instruction in the lower
}

func (c *code) newWaitless() *waitless {
	body := c.k.Body
	n := len(body)
	lists, queues := make([]int32, (3+len(ir.Instr{}.Args))*n), make([]uint64, 2*n)
	q := &waitless{ready: lists[:n], missing: lists[n : 2*n], first: lists[2*n : 3*n], more: lists[3*n:], able: queues[:0:n], waiting: queues[n:n]}
	for i, in := range body {
		for k, a := range in.Args {
			if a != ir.None && !slices.Contains(in.Args[:k], a) {
				q.missing[i]++
				at := i*len(in.Args) + k
				q.more[at], q.first[a] = q.first[a], int32(at+1)
			}
		}
		if q.missing[i] == 0 {
			q.waiting = append(q.waiting, uint64(i))
		}
	}
	return q
}

// insert inserts a number into a sorted list.
func insert(list []uint64, x uint64) []uint64 {
	at, _ := slices.BinarySearch(list, x)
	return slices.Insert(list, at, x)
}

// next takes the first instruction that need not wait at time now, else the one that waits least.
func (q *waitless) next(now int) int {
	for len(q.waiting) > 0 && int(q.waiting[0]>>32) <= now {
		q.able = insert(q.able, uint64(uint32(q.waiting[0])))
		q.waiting = q.waiting[1:]
	}
	from := &q.able
	if len(q.able) == 0 {
		from = &q.waiting
	}
	i := uint32((*from)[0])
	*from = (*from)[1:]
	return int(i)
}

// done makes the readers of instruction i wait until time end.
func (q *waitless) done(i, end int) {
	for at := q.first[i]; at > 0; at = q.more[at-1] {
		r := int(at-1) / len(ir.Instr{}.Args)
		q.ready[r] = max(q.ready[r], int32(end))
		if q.missing[r]--; q.missing[r] == 0 {
			q.waiting = insert(q.waiting, uint64(q.ready[r])<<32|uint64(r))
		}
	}
}
