package stream

import (
	"errors"
	"fmt"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/segment"
)

// Place is where an op without tensor operands goes.
type Place struct {
	S     *Stream
	Scope *Scope // nil: none
}

// Arg is an operand: a tensor, or where V is nil a scalar, whose bits are in
// the dtype that ir.ScalarDType gives.
type Arg struct {
	V    *Value
	Bits uint64
}

// Record appends an op. dst is a zero Value. out is the dtype that Cast and
// creation ops ask for, shape what creation ops, Reshape, Slice and Expand do.
// It never fails: dst carries what went wrong, with the caller's line.
//
// The home of the result is p for creation ops, else the first operand's
// stream that is not its device's default stream, else the default stream.
func Record(dst *Value, p Place, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg) {
	home, scope := p.S, p.Scope
	tensors, mixed := false, false
	for i := range args {
		v := args[i].V
		if v == nil {
			continue
		}
		h := v.home
		if h == nil {
			failZero(dst, p, op, i, args)
			return
		}
		if h != home {
			if tensors {
				mixed = true
			}
			if !tensors || (home == home.dev.def && h.dev == home.dev) {
				home = h
			}
		}
		if sc := v.owner(); sc != scope && (!tensors || deeper(sc, scope)) {
			scope = sc
		}
		tensors = true
	}
	var foreign [3]found
	var err error
	if mixed {
		err = handOvers(home, args, &foreign)
	}
	if err == nil {
		home.mu.Lock()
		err = home.record(dst, scope, op, out, shape, attr, args, &foreign)
		home.unlock()
	}
	switch {
	case err == errElsewhere:
		Record(dst, p, op, out, shape, attr, args)
	case err != nil:
		failIn(dst, home, scope, op.String(), err, args)
	default:
		home.entered(dst, scope)
	}
}

// errElsewhere says that Set on another goroutine took a handle to another stream
// than the one whose lock is held. Whoever finds it looks again where the handle is.
var errElsewhere = errors.New("the handle is on another stream by now")

// found is an operand as it was found under its stream's lock, with a reader for
// the finder: its handle may have been given another value since.
type found struct {
	*storage
	kind
}

// kind is the type of an operand; form is nil for a scalar.
type kind struct {
	dt   ir.DType
	form *queue.Form
}

// failZero makes dst carry the error of operand i, which belongs to no stream.
func failZero(dst *Value, p Place, op ir.Op, i int, args []Arg) {
	if v := args[i].V; v.state == stFailed {
		failIn(dst, p.S, p.Scope, op.String(), v.ext.err, args)
		return
	}
	Fail(dst, p, op.String(), fmt.Errorf("operand %d: %w", i, ErrNoValue), args)
}

// handOvers makes the operands of other streams readable by home's queue.
func handOvers(home *Stream, args []Arg, foreign *[3]found) (err error) {
	for i := range args {
		v := args[i].V
		if v == nil || v.home == home {
			continue
		}
		if s := v.home; s.dev != home.dev {
			err = fmt.Errorf("%w: operands on devices %s and %s: move one with To", ir.ErrUnsupported, home.dev.name, s.dev.name)
		} else {
			foreign[i], err = s.handOver(v, home)
		}
		if err != nil {
			releaseAll(foreign)
			return err
		}
	}
	return nil
}

func releaseAll(foreign *[3]found) {
	for _, f := range foreign {
		if f.storage != nil {
			f.release()
		}
	}
}

// record does Record's work under the stream's lock.
func (s *Stream) record(dst *Value, scope *Scope, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg, foreign *[3]found) error {
	err := s.usable()
	for i := range args {
		if v := args[i].V; v != nil && foreign[i].storage == nil && v.home != s {
			err = errElsewhere
		}
	}
	var kinds [3]kind
	for i := range args {
		v := args[i].V
		if v == nil || err != nil {
			continue
		}
		if foreign[i].storage != nil {
			kinds[i] = foreign[i].kind
			continue
		}
		if v.state != stPending {
			v, err = s.readable(v) // the holder
			args[i].V = v
		}
		kinds[i] = kind{v.dt, v.form}
	}
	var dt ir.DType
	var form *queue.Form
	if err == nil {
		dt, form, err = infer(op, attr, out, shape, kinds[:len(args)])
	}
	if err == nil {
		err = s.supported(dt) // it has those of the operands
	}
	if err != nil {
		releaseAll(foreign)
		return err
	}
	info := op.Info()
	if info.Class == ir.ClassView && args[0].V.state == stReady && foreign[0].storage == nil && !s.taped() {
		x := args[0].V
		if view, ok := viewOf(&ir.Node{Op: op, Shape: form.Shape, Attr: attr}, x.form.Shape, x.mem.layout()); ok {
			s.addView(dst, scope, x.mem, view, dt, form)
			return nil
		}
	}

	// What is computed again comes first, as it appends ops of its own, then the
	// operands that are new to the queue, right before the op that reads them.
	for i := range args {
		if v := args[i].V; v != nil && foreign[i].storage == nil && v.state == stVirtual {
			s.replay(v)
		}
	}
	var ids [3]int32
	tensor := dt // dtype of the tensor operands, a mask apart
	for i := range args {
		v := args[i].V
		if v == nil {
			continue
		}
		tensor = kinds[i].dt
		switch f := &foreign[i]; {
		case f.storage != nil:
			ids[i] = s.foreign(f.storage, f.dt, f.form)
		case v.state == stPending:
			ids[i] = v.id
		default:
			ids[i] = s.slot(v)
		}
	}
	n := ir.Node{Op: op, DT: dt, Attr: attr, NArgs: uint8(len(args))}
	for i := range args {
		a := &n.Args[i]
		if a.ID, a.Scalar = ids[i], args[i].V == nil; a.Scalar {
			a.ID = s.q.Scalar(ir.ScalarDType(op, i, tensor, dt), args[i].Bits)
		}
	}
	dst.home, dst.dt, dst.form, dst.state, dst.gen = s, dt, form, stPending, s.gen
	dst.id = s.push(&n, form, held{v: dst})
	s.enter(dst, scope)
	if s.node == nil || s.dev.opts.Lines {
		s.noteLine(caller())
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
func infer(op ir.Op, attr *ir.Attr, out ir.DType, shape ir.Shape, args []kind) (ir.DType, *queue.Form, error) {
	info := op.Info()
	if info.Class == ir.ClassElementwise && (info.Out == ir.OutSame || info.Out == ir.OutBool) && len(args) == info.Arity {
		var first *kind
		alike := true
		for i := range args {
			switch k := &args[i]; {
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
	for i, k := range args {
		if k.form != nil {
			in[i] = ir.Operand{DT: k.dt, Shape: k.form.Shape}
		} else {
			in[i] = ir.Operand{Scalar: true}
		}
	}
	dt, result, err := ir.Infer(op, attr, out, shape, in[:len(args)]...)
	if err != nil {
		return dt, nil, err
	}
	for _, k := range args { // ir.Infer hands back an operand's shape where that is the result's
		if k.form != nil && sameSlice(k.form.Shape, result) {
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
	if s.dev.caps.DTypes.Has(dt) {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s", ir.ErrUnsupported, s.dev.name, dt)
}

// readable says whether a value of this stream can be an operand, and gives the
// handle that holds it. The lock is held.
func (s *Stream) readable(v *Value) (*Value, error) {
	if v.home != s {
		return v, errElsewhere
	}
	if v.state == stShares {
		v = v.ext.of
	}
	switch v.state {
	case stFailed:
		return v, v.ext.err
	case stReleased:
		return v, v.ext.releasedErr()
	case stReady:
		if e := v.mem.failed(); e != nil {
			return v, e
		}
	case stNone:
		return v, ErrNoValue
	}
	return v, nil
}

// Fail makes dst carry an error that the public package found itself.
func Fail(dst *Value, p Place, op string, err error, args []Arg) {
	home, scope := p.S, p.Scope
	for _, a := range args {
		if a.V != nil && a.V.home != nil {
			home, scope = a.V.home, a.V.owner()
			break
		}
	}
	failIn(dst, home, scope, op, err, args)
}

// failIn makes dst carry err: as it is where it came from an operand, which
// keeps the first cause, else as a new OpError that the stream reports.
func failIn(dst *Value, home *Stream, scope *Scope, op string, err error, args []Arg) {
	e, inherited := err.(*OpError)
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
		home.report(e)
		home.dev.rethrow() // callers that hold a lock defer its unlock
	}
}

// ext is what few values have.
type ext struct {
	err     *OpError // stFailed
	recipe  *recipe  // stVirtual; shared by values with the same leaves
	of      *Value   // stShares: the handle that holds the value
	sharers []*Value // of a holder: the handles that say so
	where   site     // stReleased: who called Release
	scope   *Scope   // stReleased: whose end released it
}

func (x *ext) releasedErr() error {
	if x == &given {
		return fmt.Errorf("%w, given away to a Recording", ErrReleased)
	}
	if x.scope != nil {
		return fmt.Errorf("%w, released by the end of the scope opened at %s", ErrReleased, x.scope.where)
	}
	return fmt.Errorf("%w, released at %s", ErrReleased, x.where)
}

// handOver makes a value of this stream readable by the stream to: it is in
// memory or will be when earlier submitted work has run. The result carries a
// reader for the caller. The stream is cut right after the producing op, a
// place that depends on the program only.
func (s *Stream) handOver(v *Value, to *Stream) (found, error) {
	s.mu.Lock()
	defer s.unlock()
	v, err := s.readable(v)
	if err != nil {
		return found{}, err
	}
	if v.state == stVirtual {
		s.replay(v)
	}
	if v.state == stPending {
		s.flushPrefix(s.entryOf(v.id)+1, segment.End{Reason: segment.ReasonHandOver, ID: v.id}, false)
		if v, err = s.readable(v); err != nil {
			return found{}, err
		}
	}
	if v.state != stReady {
		return found{}, runtime.ErrClosed
	}
	if to != s && s.taped() {
		s.taping.leaks(v.mem)
	}
	return v.found(), nil
}

// found is a value that is in memory, with a reader for the caller. The lock is held.
func (v *Value) found() found {
	v.mem.retain()
	return found{v.mem, kind{v.dt, v.form}}
}

// entryOf is the entry that made a pending relative id.
func (s *Stream) entryOf(id int32) int {
	for i := len(s.q.Entries) - 1; i >= 0; i-- {
		if e := &s.q.Entries[i]; e.Node >= 0 && e.Slot == id {
			return i
		}
	}
	return len(s.q.Entries) - 1
}
