package stream

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/memory"
	"github.com/millrace-go/millrace/operror"
	"github.com/millrace-go/millrace/queue"
)

// Place is where an op without tensor operands goes.
type Place struct {
	S     *Stream
	Scope *Scope // nil: none
}

// Arg is an operand: a tensor, or where V is nil a scalar, whose bits are in
// the dtype that ir.ScalarDType gives. Is is what the caller found that V names, if
// other arguments depend on that.
type Arg struct {
	V    *Value
	Is   *Value
	Bits uint64
}

// Record appends an op. dst is a zero Value. out is the dtype that Cast and
// creation ops ask for, shape what creation ops, Reshape, Slice and Expand do.
// It never fails: dst carries what went wrong, with the caller's line. It reports
// false, and has done nothing, where an operand is not any more what the caller found.
//
// The home of the result is p for creation ops, else the first operand's
// stream that is not its device's default stream, else the default stream.
func Record(dst *Value, p Place, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg) bool {
	for {
		err := record(dst, p, op, out, shape, attr, args)
		if err != errMoved {
			return err != errNotIt
		}
	}
}

// errMoved says that Set on another goroutine took a handle to another stream than the
// one whose lock is held. Whoever finds it looks again where the handle is.
var errMoved = errors.New("the handle is on another stream by now")

// errNotIt says that a handle names something else than its Arg says.
var errNotIt = errors.New("the handle has another value by now")

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

// failZero makes dst carry the error of operand i, which belongs to no stream.
func failZero(dst *Value, p Place, op ir.Op, i int, args []Arg) {
	if v := args[i].V.now(); v.state == stFailed {
		failIn(dst, p.S, p.Scope, op.String(), v.ext.err, args)
		return
	}
	Fail(dst, p, op.String(), fmt.Errorf("operand %d: %w", i, operror.ErrNoValue), args)
}

// record does Record's work under the stream's lock.
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
		err = s.supported(dt) // it has those of the operands
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

	// What is computed again comes first, as it appends ops of its own, then the
	// operands that are new to the queue, right before the op that reads them.
	for i := range args {
		if v := ops[i].v; v != nil && v.state == stVirtual {
			s.replay(v)
		}
	}
	var ids [3]int32
	tensor := dt // dtype of the tensor operands, a mask apart
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
	if (s.node == nil || s.dev.Opts.Lines) && s.trial == nil {
		s.noteLine(operror.Caller())
	}
	s.maybeCut()
	return nil
}

// push appends a node: it is recorded, weighed and matched. It returns the
// result's relative id. The lock is held.
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

// noteLine remembers where the last node was recorded: for ops no plan is known
// of, so that a plan can name the lines of its ops when it fails later.
func (s *Stream) noteLine(line string) {
	for len(s.lines) < s.q.Len() {
		s.lines = append(s.lines, "")
	}
	s.lines[s.q.Len()-1] = line
}

// infer is ir.Infer behind a path for what is nearly every op: elementwise, on
// operands of one dtype and one shape.
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
	for i := range args { // ir.Infer hands back an operand's shape where that is the result's
		if k := &ops[i].kind; k.form != nil && sameSlice(k.form.Shape, result) {
			return dt, k.form, nil
		}
	}
	return dt, queue.NewForm(result), nil
}

func sameSlice(a, b ir.Shape) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// supported reports a dtype the device does not have.
func (s *Stream) supported(dt ir.DType) error {
	if s.dev.Caps.DTypes.Has(dt) {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s", ir.ErrUnsupported, s.dev.Name(), dt)
}

// Fail makes dst carry an error that the public package found itself.
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

// failIn makes dst carry err: as it is where it came from an operand, which
// keeps the first cause, else as a new OpError that the stream reports.
func failIn(dst *Value, home *Stream, scope *Scope, op string, err error, args []Arg) {
	if at := new(trialError); errors.As(err, &at) {
		home = at.s
	}
	e, inherited := err.(*operror.Error)
	if !inherited {
		e = newOpError(op, err, args)
	}
	dst.home, dst.state, dst.ext = home, stFailed, &ext{err: e}
	if scope != nil { // descendants of it stay in the scope, and what Set may give it
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

// ext is what few values have.
type ext struct {
	err    *operror.Error // stFailed
	recipe *recipe        // stVirtual, or lent; shared by values with the same leaves
	lease  *lease         // lent
	where  operror.Site   // stReleased: who called Release
	scope  *Scope         // stReleased: whose end released it
}

func (x *ext) releasedErr() error {
	if x == &given {
		return fmt.Errorf("%w, given away to a Recording", operror.ErrReleased)
	}
	if x.scope != nil {
		return fmt.Errorf("%w, released by the end of the scope opened at %s", operror.ErrReleased, x.scope.where)
	}
	if at := x.where.String(); at != "" {
		return fmt.Errorf("%w, released at %s", operror.ErrReleased, at)
	}
	return fmt.Errorf("%w, released by the library", operror.ErrReleased)
}

// itemOf is the item that made a pending relative id.
func (s *Stream) itemOf(id int32) int {
	for i := len(s.q.Items) - 1; i >= 0; i-- {
		if e := &s.q.Items[i]; e.Node >= 0 && e.Slot == id {
			return i
		}
	}
	return len(s.q.Items) - 1
}
