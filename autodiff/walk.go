package autodiff

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/operror"
)

// walk goes once from results back to the tensors that they were computed from, the last op first.
// In that order a node has got all its derivatives when it is visited.
type walk struct {
	Options
	by      *operror.Trail
	due     []*node
	waiting map[*node]*waiting
	idle    []*waiting     // free objects, of nodes that were visited
	step    step           // the run of the current rule
	stack   []*node        // stack of leadsOn
	leads   map[*node]bool // whether a node leads to a goal
	goals   map[link]bool
	tell    map[link][]int   // for Ready: the indices of each goal in the program's order
	found   map[link]*tensor // derivatives by goals
	spent   []*node
	recalls []*recall // Checkpoints with nodes that are not visited yet
	first   uint64    // lowest number of the goals' nodes: no older node leads to a goal
}

// waiting holds the derivatives that a node has got so far, by result.
type waiting struct {
	of []sum
	ds []*tensor // the whole derivative of each result, when the node is visited

	// Space for one result, which is all that most nodes have.
	one struct {
		of [1]sum
		ds [1]*tensor
	}
}

// sum is a derivative that is being added up, and pieces of it.
type sum struct {
	whole  *tensor
	pieces []*piece
	dt     millrace.DType // the 16-bit dtype if whole is added up in a wider one, else Invalid
}

// add adds d to the sum and releases d and the old sum. 16-bit derivatives are added in the dtype
// that they are computed in: otherwise the last of many small ones would be rounded away.
func (s *sum) add(d *tensor) {
	if dt := d.DType(); d.Err() == nil && dt.Storage() {
		s.dt = dt
	}
	was, more := s.widened(s.whole), s.widened(d)
	next := was.Add(more)
	letGo(s.whole, d, was, more)
	s.whole = next
}

// widened is t in the dtype of the sum.
func (s *sum) widened(t *tensor) *tensor {
	if dt := t.DType(); t.Err() == nil && dt.Storage() && s.dt != millrace.Invalid {
		return t.Cast(dt.Compute())
	}
	return t
}

// rounded is the sum in the derivative's own dtype.
func (s *sum) rounded() *tensor {
	if t := s.whole; s.dt != millrace.Invalid && t.Err() == nil {
		s.whole = t.Cast(s.dt)
		letGo(t)
	}
	return s.whole
}

func (b *walk) Len() int           { return len(b.due) }
func (b *walk) Less(i, j int) bool { return b.due[i].seq > b.due[j].seq }
func (b *walk) Swap(i, j int)      { b.due[i], b.due[j] = b.due[j], b.due[i] }
func (b *walk) Push(x any)         { b.due = append(b.due, x.(*node)) }
func (b *walk) Pop() any {
	n := b.due[len(b.due)-1]
	b.due = b.due[:len(b.due)-1]
	return n
}

func newWalk(o Options, by *operror.Trail, goals []link) *walk {
	b := &walk{Options: o, by: by, waiting: map[*node]*waiting{}, leads: map[*node]bool{}, goals: map[link]bool{}, found: map[link]*tensor{}}
	for _, g := range goals {
		if b.first == 0 || g.seq < b.first {
			b.first = g.seq
		}
		b.goals[g] = true
		b.leads[g.node] = true
	}
	if o.Ready != nil {
		b.tell = map[link][]int{}
		for i, g := range goals {
			b.tell[g] = append(b.tell[g], i)
		}
	}
	return b
}

// leadsOn reports that a node is a goal or was computed from one. It does not recurse, because a
// graph can be as deep as the number of iterations of a loop.
func (b *walk) leadsOn(n *node) bool {
	if v, known := b.leads[n]; known {
		return v
	}
	stack := append(b.stack[:0], n)
	var links []link
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		if _, known := b.leads[top]; known {
			stack = stack[:len(stack)-1]
			continue
		}
		links = top.operands(links[:0])
		// A node that was given up leads on, so the walk reaches it and reports the error. This is
		// asked after the links were read: links are cut only after the node was marked, so a cut
		// node is never taken for one that leads nowhere.
		leads, waits := top.givenUp() || top.group != nil && top.group.lost, false
		for _, l := range links {
			if l.node == nil {
				continue
			}
			v, known := b.leads[l.node]
			if !known {
				stack, waits = append(stack, l.node), true
			}
			leads = leads || v
		}
		if !waits {
			b.leads[top] = leads
			stack = stack[:len(stack)-1]
		}
	}
	b.stack = stack
	return b.leads[n]
}

// give adds a derivative d, or a piece p, to a node's result. The walk owns it from then on.
func (b *walk) give(to link, d *tensor, p *piece) {
	if to.node == nil || !b.leadsOn(to.node) {
		if d != nil {
			root.LetGo(d)
		}
		if p != nil {
			root.LetGo(p.d)
		}
		return
	}
	w := b.waiting[to.node]
	if w == nil {
		w = b.room(to.node.results())
		b.waiting[to.node] = w
		heap.Push(b, to.node)
	}
	s := &w.of[to.out]
	switch {
	case p != nil:
		s.pieces = append(s.pieces, p)
	case s.whole == nil:
		s.whole = d
		root.Want(d)
	default:
		s.add(d)
	}
}

// room is an object for the derivatives of the given number of results.
func (b *walk) room(results int) *waiting {
	if len(b.idle) == 0 {
		more := make([]waiting, 32)
		for i := range more {
			w := &more[i]
			w.of, w.ds = w.one.of[:0], w.one.ds[:0]
			b.idle = append(b.idle, w)
		}
	}
	w := b.idle[len(b.idle)-1]
	b.idle = b.idle[:len(b.idle)-1]
	w.of = slices.Grow(w.of, results)[:results]
	return w
}

// run visits nodes until none is due.
func (b *walk) run() error {
	for len(b.due) > 0 {
		b.passed(b.due[0].seq)
		n := heap.Pop(b).(*node)
		w := b.waiting[n]
		delete(b.waiting, n)
		if err := b.visit(n, w); err != nil {
			return err
		}
		clear(w.of)
		clear(w.ds)
		w.of, w.ds = w.of[:0], w.ds[:0]
		b.idle = append(b.idle, w)
	}
	b.passed(0)
	return nil
}

// abandon releases everything that is left after an error.
func (b *walk) abandon() {
	for _, r := range b.recalls {
		b.end(r, false)
	}
	b.recalls = nil
	for _, w := range b.waiting {
		for _, s := range w.of {
			letGo(s.whole)
			for _, p := range s.pieces {
				letGo(p.d)
			}
		}
	}
	for _, d := range b.found {
		letGo(d)
	}
}

func (b *walk) visit(n *node, w *waiting) error {
	for i := range w.of {
		d := b.total(&w.of[i])
		w.ds = append(w.ds, d)
		if l := (link{n, i}); b.goals[l] && d != nil {
			b.found[l] = root.Hold(d)
			b.ready(l)
		}
	}
	defer func() { letGo(w.ds...) }() // also if a function of the program panics
	return b.pass(n, w.ds)
}

// ready tells the program that the gradient by a goal is complete.
func (b *walk) ready(l link) {
	for _, i := range b.tell[l] {
		b.Ready(i, b.found[l])
	}
}

// pass takes the derivatives of a node's results to its operands.
func (b *walk) pass(n *node, ds []*tensor) error {
	if b.CheckFinite {
		for _, d := range ds {
			if d == nil {
				continue
			}
			if fine, err := finite(d); err != nil {
				return err
			} else if !fine {
				return fmt.Errorf("%w: the gradient with respect to the result of %s at %s is not finite", ErrGraph, n.name(), n.at())
			}
		}
	}
	if n.leaf() || n.seq <= b.first {
		return nil
	}
	if !n.enter() {
		if n.ended {
			return fmt.Errorf("%w: %s at %s belongs to a function that returned at %s: use its results", ErrGraph, n.name(), n.at(), n.by)
		}
		return fmt.Errorf("%w: %s at %s belongs to a graph that the Grad at %s released: give that Grad the option Keep", ErrGraph, n.name(), n.at(), n.by)
	}
	left := false
	defer func() { // a function of the program may panic
		if !left {
			n.leave()
		}
	}()
	if n.group != nil {
		return n.group.back(b, n, ds)
	}
	if n.rule == nil {
		return fmt.Errorf("%w: %s at %s has no rule", ErrGraph, n.name(), n.at())
	}
	s := &b.step
	*s = step{node: n, follow: b.Follow}
	any := false
	for i, l := range n.in {
		s.wants[i] = l.node != nil && b.leadsOn(l.node)
		any = any || s.wants[i]
	}
	if !any {
		return nil
	}
	for _, t := range n.kept {
		if t != nil {
			if err := t.Err(); err != nil {
				return fmt.Errorf("a value that %s at %s keeps for its gradient: %w", n.name(), n.at(), err)
			}
		}
	}
	if ds[0].Err() != nil { // the error is carried on, so rules need not check for it
		for i, l := range n.in {
			if s.wants[i] {
				b.give(l, root.Hold(ds[0]), nil)
			}
		}
		return nil
	}
	s.steps = root.Steps()
	s.d = s.wide(s.steps.Use(ds[0]))
	n.rule.back(s)
	s.steps.End()
	if s.refused != "" {
		return fmt.Errorf("%w: %s at %s: %s", ErrGraph, n.name(), n.at(), s.refused)
	}
	if !b.Keep {
		b.spend(n)
	}
	in := n.in
	left = true
	n.leave()
	for i, l := range in {
		if s.given[i] != nil || s.slices[i] != nil {
			b.give(l, s.given[i], s.slices[i])
		}
	}
	return nil
}

// spend gives up what a node keeps, as soon as its rule has run.
func (b *walk) spend(n *node) {
	n.release(b.by)
	b.spent = append(b.spent, n)
}

// forget cuts the links of the walked graph. So a result that the program keeps does not keep the
// graph.
func (b *walk) forget() {
	for _, n := range b.spent {
		n.cut()
	}
}

// total is the whole derivative of a result: its sum, plus its pieces in their places, with zeros
// between.
func (b *walk) total(s *sum) *tensor {
	if len(s.pieces) == 0 {
		return s.rounded()
	}
	shape := s.pieces[0].shape
	r := sideBySide(shape, s.pieces)
	if r == nil {
		r = zerosLike(s.pieces[0].d, shape)
		for i, p := range s.pieces {
			next := b.placed(r, p, i > 0 && overlaps(s.pieces[:i], p))
			letGo(r)
			r = next
		}
	}
	for _, p := range s.pieces {
		letGo(p.d)
	}
	if s.whole == nil {
		return r
	}
	s.add(r)
	return s.rounded()
}

// placed is r with a piece written to its place, or added there.
func (b *walk) placed(r *tensor, p *piece, add bool) *tensor {
	d := p.d
	if add {
		was := r.Slice(p.ranges...)
		d = was.Add(p.d)
		defer letGo(was, d)
	}
	return r.Assign(d, p.ranges...)
}

// overlaps reports that a piece may overlap one of others. Pieces with steps always may.
func overlaps(others []*piece, p *piece) bool {
	shape := p.d.Shape()
	for _, o := range others {
		if o.start == nil || p.start == nil {
			return true
		}
		apart, other := false, o.d.Shape()
		for i := range shape {
			apart = apart || p.start[i]+shape[i] <= o.start[i] || o.start[i]+other[i] <= p.start[i]
		}
		if !apart {
			return true
		}
	}
	return false
}

// sideBySide joins the pieces along the one axis in which they differ, with zeros between them; nil
// if they are not side by side.
func sideBySide(shape []int, pieces []*piece) *tensor {
	axis := -1
	for _, p := range pieces {
		if p.start == nil {
			return nil
		}
		for i, n := range p.d.Shape() {
			switch {
			case n == shape[i] && p.start[i] == 0:
			case axis >= 0 && axis != i:
				return nil
			default:
				axis = i
			}
		}
	}
	if axis < 0 || len(pieces) == 1 {
		return nil
	}
	order := slices.Clone(pieces)
	slices.SortStableFunc(order, func(a, b *piece) int { return a.start[axis] - b.start[axis] })
	at := 0
	var parts, zeros []*tensor
	defer func() { letGo(zeros...) }()
	fill := func(to int) {
		if to > at {
			gap := slices.Clone(shape)
			gap[axis] = to - at
			z := zerosLike(pieces[0].d, gap)
			zeros, parts = append(zeros, z), append(parts, z)
		}
	}
	for _, p := range order {
		if p.start[axis] < at {
			return nil
		}
		fill(p.start[axis])
		parts = append(parts, p.d)
		at = p.start[axis] + p.d.Dim(axis)
	}
	fill(shape[axis])
	return millrace.Concat(axis, parts...)
}

func zerosLike(t *tensor, shape []int) *tensor { return root.Full(t, t.DType(), 0, shape) }

func fullLike(t *tensor, value float64, shape ...int) *tensor {
	return root.Full(t, t.DType(), value, shape)
}
