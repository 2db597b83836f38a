package stream

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// Place is the stream and scope of an op that has no tensor operands.
type Place struct {
	S     *Stream
	Scope *Scope // nil: none
}

// Arg is an operand. It is a tensor, or a scalar if V is nil; a scalar's bits are in the dtype
// that ir.ScalarDType gives. If other arguments depend on the value of V, Is is the value that
// the caller found V to name.
type Arg struct {
	V    *Value
	Is   *Value
	Bits uint64
}

// Record appends an op. dst is a zero Value. out is the dtype that Cast and creation ops need;
// shape is the shape that creation ops, Reshape, Slice and Expand need. An error is stored in
// dst, with the caller's line. Record returns false, and does nothing, if an operand no longer
// names the value in Arg.Is.
//
// The result belongs to p's stream if the op has no tensor operands. Otherwise it belongs to the
// first operand's stream that is not its device's default stream, or to the default stream if
// there is none.
func Record(dst *Value, p Place, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg) bool {
	for {
		err := record(dst, p, op, out, shape, attr, args)
		if err != errMoved {
			return err != errNotIt
		}
	}
}

// errMoved means that Set in another goroutine made a handle name a value of another stream than
// the locked one. The caller tries again with the handle's new stream.
var errMoved = errors.New("the handle has moved to another stream")

// errNotIt means that a handle does not name the value in Arg.Is any more.
var errNotIt = errors.New("the handle has got another value")

func record(dst *Value, p Place, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg) error {
	home, scope := p.S, p.Scope
	tensors, mixed := false, false
	for i := range args {
		h := args[i].V
		if h == nil {
			continue
		}
		at := h.now().home
		if at == nil {
			failZero(dst, p, op, i, args)
			return nil
		}
		if at != home {
			if tensors {
				mixed = true
			}
			if !tensors || (home == home.dev.def && at.dev == home.dev) {
				home = at
			}
		}
		if sc := h.owner(); sc != scope && (!tensors || deeper(sc, scope)) {
			scope = sc
		}
		tensors = true
	}
	if op.Class() == ir.ClassView && scope == nil {
		if err := view(dst, op, out, shape, attr, args); err == nil || err == errNotIt {
			return err
		}
	}
	var ops operands
	var err error
	if mixed {
		err = ops.handOver(home, args)
	}
	if err == nil {
		home.mu.Lock()
		err = home.record(dst, scope, op, out, shape, attr, args, &ops)
		home.unlock()
	}
	switch err {
	case nil:
		home.entered(dst, scope)
	case errMoved, errNotIt:
		return err
	default:
		failIn(dst, home, scope, op.String(), err, args)
	}
	return nil
}

// failZero stores the error of operand i, which belongs to no stream, in dst.
func failZero(dst *Value, p Place, op ir.Op, i int, args []Arg) {
	if v := args[i].V.now(); v.state == stFailed {
		failIn(dst, p.S, p.Scope, op.String(), v.ext.err, args)
		return
	}
	Fail(dst, p, op.String(), fmt.Errorf("operand %d: %w", i, operror.ErrNoValue), args)
}

// record does the work of Record under the stream's lock.
func (s *Stream) record(dst *Value, scope *Scope, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg, ops *operands) error {
	err := s.usable()
	if err == nil {
		err = s.complete(ops, args)
	}
	var dt ir.DType
	var form *queue.Form
	if err == nil {
		dt, form, err = infer(op, attr, out, shape, ops, args)
	}
	if err == nil {
		err = s.supported(dt) // the operands' dtypes are supported already
	}
	if err != nil {
		ops.release()
		return err
	}
	if x := ops[0].v; op.Class() == ir.ClassView && x != nil && x.state == stReady && !s.taped() && s.trial == nil {
		st := x.mem.Load()
		if view, ok := memory.ViewOf(&ir.Node{Op: op, Shape: form.Shape, Attr: attr}, x.form.Shape, st.Layout()); ok {
			st.Retain()
			s.addView(dst, x, st, view, form)
			s.enter(dst, scope)
			return nil
		}
	}

	// Values to recompute come first, because they append ops. The operands that are new to the
	// queue come next, right before the op that reads them.
	var ids [3]int32
	for i := range args {
		if v := ops[i].v; v != nil && v.state == stVirtual {
			ids[i] = s.recall(v)
		}
	}
	tensor := dt // dtype of the tensor operands, except a mask's
	for i := range args {
		if args[i].V == nil {
			continue
		}
		o := &ops[i]
		tensor = o.dt
		switch {
		case o.Storage != nil:
			s.notes(o.Storage, o.of)
			ids[i] = s.foreign(o.Storage, o.dt, o.form)
		case o.v.state == stPending:
			ids[i] = o.v.id
		case o.v.state == stVirtual: // the queue has a copy
		default:
			ids[i] = s.slot(o.v)
		}
	}
	n := ir.Node{Op: op, DT: dt, Attr: attr, NArgs: uint8(len(args))}
	for i := range args {
		a := &n.Args[i]
		if a.ID, a.Scalar = ids[i], args[i].V == nil; a.Scalar {
			a.ID = s.q.Scalar(ir.ScalarDType(op, i, tensor, dt), args[i].Bits)
		}
	}
	dst.home, dst.dt, dst.form, dst.state = s, dt, form, stPending
	dst.id = s.push(&n, form, held{v: dst})
	s.enter(dst, scope)
	s.came(dst, op.Class() != ir.ClassCreate, nil)
	if (s.node == nil || s.dev.Opts.Lines || s.sited()) && s.trial == nil {
		if s.site != "" {
			s.noteLine(s.site)
		} else {
			s.noteLine(operror.Caller())
		}
	}
	s.maybeCut()
	return nil
}

// push appends a node to the queue, adds its weight, and steps down the trie. It returns the
// relative id of the result. The lock is held.
func (s *Stream) push(n *ir.Node, form *queue.Form, h held) int32 {
	for _, a := range n.Args[:n.NArgs] {
		if !a.Scalar {
			s.use(a.ID)
		}
	}
	e := s.q.Append(n, form, h)
	s.weigh(n.Op, e.Slot)
	s.step(e)
	return e.Slot
}

// noteLine stores the source line of the last node. It is needed for ops without a known plan: if
// the plan fails later, the error names the lines of its ops.
func (s *Stream) noteLine(line string) {
	for len(s.lines) < s.q.Len() {
		s.lines = append(s.lines, "")
	}
	s.lines[s.q.Len()-1] = line
}

// infer is ir.Infer with a shortcut for the most frequent ops: elementwise ones whose operands
// have one dtype and one shape.
func infer(op ir.Op, attr *ir.Attr, out ir.DType, shape ir.Shape, ops *operands, args []Arg) (ir.DType, *queue.Form, error) {
	info := op.Info()
	if info.Class == ir.ClassElementwise && (info.Out == ir.OutSame || info.Out == ir.OutBool) && len(args) == info.Arity {
		var first *kind
		alike := true
		for i := range args {
			switch k := &ops[i].kind; {
			case k.form == nil:
			case first == nil:
				first = k
			default:
				alike = alike && k.dt == first.dt && k.form.Equal(first.form)
			}
		}
		if alike && first != nil && info.In.Has(first.dt) {
			if info.Out == ir.OutBool {
				return ir.Bool, first.form, nil
			}
			return first.dt, first.form, nil
		}
	}
	var in [3]ir.Operand
	for i := range args {
		if k := &ops[i].kind; k.form != nil {
			in[i] = ir.Operand{DT: k.dt, Shape: k.form.Shape}
		} else {
			in[i] = ir.Operand{Scalar: true}
		}
	}
	dt, result, err := ir.Infer(op, attr, out, shape, in[:len(args)]...)
	if err != nil {
		return dt, nil, err
	}
	for i := range args { // ir.Infer returns an operand's shape if the result has the same
		if k := &ops[i].kind; k.form != nil && sameSlice(k.form.Shape, result) {
			return dt, k.form, nil
		}
	}
	return dt, queue.NewForm(result), nil
}

func sameSlice(a, b ir.Shape) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// supported returns an error if the device does not have the dtype.
func (s *Stream) supported(dt ir.DType) error {
	if s.dev.Caps.DTypes.Has(dt) {
		return nil
	}
	return fmt.Errorf("%w: device %s does not have dtype %s", ir.ErrUnsupported, s.dev.Name(), dt)
}

// Fail stores in dst an error that the public package found.
func Fail(dst *Value, p Place, op string, err error, args []Arg) {
	home, scope := p.S, p.Scope
	for _, a := range args {
		if a.V == nil {
			continue
		}
		if at := a.V.now().home; at != nil {
			home, scope = at, a.V.owner()
			break
		}
	}
	failIn(dst, home, scope, op, err, args)
}

// failIn stores err in dst. An error that came from an operand is stored as it is and so keeps
// its first cause. Another error becomes a new OpError, which the stream reports.
func failIn(dst *Value, home *Stream, scope *Scope, op string, err error, args []Arg) {
	if at := new(trialError); errors.As(err, &at) {
		home = at.s
	}
	e, inherited := err.(*operror.Error)
	if !inherited {
		e = newOpError(op, err, args)
	}
	dst.home, dst.state, dst.ext = home, stFailed, &ext{err: e}
	if scope != nil { // dst's descendants stay in the scope, and so do values that Set gives it
		dst.born = scope
		scope.home.mu.Lock()
		scope.adopt(dst)
		scope.home.mu.Unlock()
	}
	if home != nil && !inherited {
		home.Report(e)
		home.dev.Rethrow() // callers that hold a lock defer its unlock
	}
}

// ext has the fields that few values need.
type ext struct {
	err    *operror.Error // stFailed
	recipe *recipe        // stVirtual, or lent; values with the same leaves share it
	lease  *lease         // of a value that a gradient needs
	where  operror.Site   // stReleased: the place of the call of Release
	scope  *Scope         // stReleased: the scope whose end released the value
}

func (x *ext) releasedErr() error {
	if x == &given {
		return fmt.Errorf("%w: it was given away to a Recording", operror.ErrReleased)
	}
	if x.scope != nil {
		return fmt.Errorf("%w: it was released by the end of the scope opened at %s", operror.ErrReleased, x.scope.where)
	}
	if at := x.where.String(); at != "" {
		return fmt.Errorf("%w: it was released at %s", operror.ErrReleased, at)
	}
	return fmt.Errorf("%w: the library released it", operror.ErrReleased)
}

// itemOf returns the index of the item that made a pending relative id.
func (s *Stream) itemOf(id int32) int {
	for i := len(s.q.Items) - 1; i >= 0; i-- {
		if e := &s.q.Items[i]; e.Node >= 0 && e.Slot == id {
			return i
		}
	}
	return len(s.q.Items) - 1
}
