package stream

import (
	"slices"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/engine/exec"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/engine/planstore"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
)

// Trial is a stream that records a computation without ever running it. It finds out which ops
// the computation does on arguments of given shapes. Only the function on trial uses the stream.
type Trial struct {
	s      *Stream
	kinds  []kind      // types of the arguments
	ids    []int32     // the ids, in the queue, of the arguments made so far
	broken atomic.Bool // the recorded ops depend on values, or would have changed other values
	trace  *traced
}

// trialError is the error of a value that a trial would have to compute. Errors that follow from
// it belong to the trial, on any stream, because the program did not request these values.
type trialError struct{ s *Stream }

func (*trialError) Error() string {
	return "this run of a recorded function only finds out how sizes depend on the inputs' sizes, so its tensors have no values"
}

func (d *Device) newTrial(kinds []kind) *Trial {
	t := &Trial{s: &Stream{dev: d, caps: d.Caps}, kinds: kinds}
	t.s.trial = t
	t.s.lane = d.lanes.NewLane()
	t.s.bind = exec.Binder{Base: &d.Base, Pool: &d.mem, Tune: &d.tune, Lane: t.s.lane, Owner: t.s}
	t.s.q.Interner = &d.plans.Attrs
	return t
}

// Stream returns the stream of the trial.
func (t *Trial) Stream() *Stream { return t.s }

// Argument makes dst, which belongs to a scope of the stream, the next argument.
func (t *Trial) Argument(dst *Value, sc *Scope) {
	s, k := t.s, t.kinds[len(t.ids)]
	s.mu.Lock()
	dst.home, dst.dt, dst.form, dst.state = s, k.dt, k.form, stPending
	dst.id = s.q.Input(held{v: dst}, k.dt, k.form)
	t.ids = append(t.ids, dst.id)
	s.enter(dst, sc)
	s.mu.Unlock()
}

// alias makes dst another handle of a value of the trial that has no memory. It returns false for
// other values.
func (t *Trial) alias(dst *Value, sc *Scope, v *Value) bool {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.home != s || v.state != stPending {
		return false
	}
	dst.home, dst.dt, dst.form, dst.state, dst.id = s, v.dt, v.form, stPending, v.id
	s.enter(dst, sc)
	return true
}

// neverReady returns the error of the caller that needs a value that was not written. The lock is
// held.
func (s *Stream) neverReady() error {
	if s.trial == nil {
		return runtime.ErrClosed
	}
	s.trial.broken.Store(true)
	return &trialError{s}
}

// end drops the recorded ops.
func (t *Trial) end() {
	t.s.mu.Lock()
	t.s.reset()
	t.s.closed.Store(true)
	t.s.mu.Unlock()
}

// traced is the list of ops of a computation, in recorded order.
type traced struct {
	nodes   []tracedNode
	memory  []tracedMemory // in the order of first use
	results []tracedRef
}

// tracedMemory is memory from outside.
type tracedMemory struct {
	st       *memory.Storage
	dt       ir.DType
	form     *queue.Form
	constant int // index of the tape's constant
}

// tracedNode is an op. Its numbers may depend on sizes: the dims of the result, then where a
// slice starts and how it steps.
type tracedNode struct {
	ir.Node
	shape   ir.Shape
	from    [3]tracedRef
	scalars []queue.Scalar
}

// tracedRef is an operand: a node, an argument, memory from outside, or a scalar.
type tracedRef struct {
	kind tracedKind
	n    int
}

type tracedKind uint8

const (
	tracedNone tracedKind = iota
	tracedScalar
	tracedOp
	tracedArg
	tracedOutside
)

// outside returns a reference to memory. The same Storage always has the same reference.
func (tr *traced) outside(m tracedMemory) tracedRef {
	for i := range tr.memory {
		if tr.memory[i].st == m.st {
			return tracedRef{tracedOutside, i}
		}
	}
	tr.memory = append(tr.memory, m)
	return tracedRef{tracedOutside, len(tr.memory) - 1}
}

// Results ends the recording while its values still exist, and keeps its trace.
func (t *Trial) Results(results []*Value) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes, out := s.q.Nodes()
	tr := new(traced)
	ref := func(id int32) tracedRef {
		sl := &s.q.Slots[id]
		if sl.Def >= 0 {
			return tracedRef{tracedOp, int(sl.Def)}
		}
		if i := slices.Index(t.ids, id); i >= 0 {
			return tracedRef{tracedArg, i}
		}
		return tr.outside(tracedMemory{st: sl.H.st, dt: sl.DT, form: sl.Form})
	}
	for i := range nodes {
		tr.add(&nodes[i], s.q.Slots[out[i]].Form.Shape, ref, func(id int32) queue.Scalar { return s.q.Scalars[id] })
	}
	for _, h := range results {
		v := h.now()
		switch {
		case v.home == s && v.state == stPending:
			tr.results = append(tr.results, ref(v.id))
		case v.mem.Load() != nil:
			tr.results = append(tr.results, tr.outside(tracedMemory{st: v.mem.Load(), dt: v.dt, form: v.form}))
		default:
			return // it has an error
		}
	}
	if !t.broken.Load() {
		t.trace = tr
	}
}

func (tr *traced) add(n *ir.Node, shape ir.Shape, ref func(id int32) tracedRef, scalar func(id int32) queue.Scalar) {
	node := tracedNode{Node: *n, shape: shape}
	for i, a := range n.Args[:n.NArgs] {
		if a.Scalar {
			node.from[i].kind = tracedScalar
			node.scalars = append(node.scalars, scalar(a.ID))
		} else {
			node.from[i] = ref(a.ID)
		}
	}
	tr.nodes = append(tr.nodes, node)
}

// trace returns the ops of the tape in the form of a trial's trace. The tape must set no handles.
func (t *Tape) trace() *traced {
	tr := new(traced)
	products := make([]int, t.products)
	source := func(from tapeSource, dt ir.DType, form *queue.Form) tracedRef {
		switch from.kind {
		case tapeArg:
			return tracedRef{tracedArg, from.n}
		case tapeProduct:
			return tracedRef{tracedOp, products[from.n]}
		}
		return tr.outside(tracedMemory{t.constants[from.n], dt, form, from.n})
	}
	for _, p := range t.parts {
		first := len(tr.nodes)
		from := map[int32]tapeSource{}
		for _, o := range p.operands {
			from[o.slot] = o.from
		}
		ref := func(id int32) tracedRef {
			sl := p.saved.Slot(id)
			if sl.Def >= 0 {
				return tracedRef{tracedOp, first + int(sl.Def)}
			}
			return source(from[id], sl.DT, sl.Form)
		}
		nodes, out := p.saved.Nodes()
		for i := range nodes {
			tr.add(&nodes[i], p.saved.Slot(out[i]).Form.Shape, ref, p.saved.Scalar)
		}
		for _, r := range p.results {
			products[r.product] = first + int(p.saved.Slot(r.slot).Def)
		}
	}
	for _, o := range t.outs {
		tr.results = append(tr.results, source(o.tapeSource, o.dt, o.form))
	}
	return tr
}

// alike reports that another computation does the same except for numbers: sizes, where slices
// start and how they step, and scalars.
func (tr *traced) alike(other *traced) bool {
	if len(tr.nodes) != len(other.nodes) || !slices.Equal(tr.results, other.results) ||
		!slices.EqualFunc(tr.memory, other.memory, tracedMemory.alike) {
		return false
	}
	for i := range tr.nodes {
		a, b := &tr.nodes[i], &other.nodes[i]
		if a.Op != b.Op || a.DT != b.DT || a.NArgs != b.NArgs || a.from != b.from || len(a.shape) != len(b.shape) || !a.Attr.SameForm(b.Attr) {
			return false
		}
		for k := range a.scalars {
			if a.scalars[k].DT != b.scalars[k].DT {
				return false
			}
		}
	}
	return true
}

// alike reports that both are the same memory with the same view except for numbers.
func (m tracedMemory) alike(other tracedMemory) bool {
	a, b := m.st.View, other.st.View
	if m.st.Block != other.st.Block || m.dt != other.dt || len(m.form.Shape) != len(other.form.Shape) {
		return false
	}
	if a == nil || b == nil || a.Stride == nil || b.Stride == nil || len(a.Stages)+len(b.Stages) > 0 {
		return m.form.Equal(other.form) && (m.st == other.st || planstore.SameView(a, b))
	}
	return len(a.Stride) == len(b.Stride)
}

// numbers returns the numbers of the node, in order.
func (n *tracedNode) numbers() (list []int64) {
	parts := [][]int{n.shape}
	if n.Attr != nil {
		parts = append(parts, n.Attr.Start, n.Attr.Step)
	}
	for _, p := range parts {
		for _, d := range p {
			list = append(list, int64(d))
		}
	}
	return list
}

// numbers returns the dims, and the offset and strides of the view if they may depend on sizes.
func (m *tracedMemory) numbers() (list []int64) {
	for _, d := range m.form.Shape {
		list = append(list, int64(d))
	}
	if v := m.st.View; v != nil && len(v.Stages) == 0 && v.Stride != nil {
		list = append(append(list, v.Offset), v.Stride...)
	}
	return list
}
