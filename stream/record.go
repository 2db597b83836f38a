package stream

import (
	"fmt"

	"github.com/millrace-go/millrace/ir"
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
	tensors := false
	for i := range args {
		v := args[i].V
		if v == nil {
			continue
		}
		h := v.home
		if h == nil && v.state == stFailed {
			failIn(dst, p.S, p.Scope, op.String(), v.ext.err, args)
			return
		}
		if h == nil {
			Fail(dst, p, op.String(), fmt.Errorf("%w: operand %d is a zero Tensor", ir.ErrUnsupported, i), args)
			return
		}
		if !tensors || (home == home.dev.def && h.dev == home.dev) {
			home = h
		}
		if sc := v.scope.Load(); !tensors || deeper(sc, scope) {
			scope = sc
		}
		tensors = true
	}
	var foreign [3]*storage
	for i := range args {
		v := args[i].V
		if v == nil || v.home == home {
			continue
		}
		var err error
		if v.home.dev != home.dev {
			err = fmt.Errorf("%w: operands on devices %s and %s: move one with To", ir.ErrUnsupported, home.dev.name, v.home.dev.name)
		} else {
			foreign[i], err = v.home.handOver(v)
		}
		if err != nil {
			for _, st := range foreign {
				if st != nil {
					st.release()
				}
			}
			failIn(dst, home, scope, op.String(), err, args)
			return
		}
	}
	home.mu.Lock()
	err := home.record(dst, scope, op, out, shape, attr, args, &foreign)
	home.mu.Unlock()
	if err != nil {
		failIn(dst, home, scope, op.String(), err, args)
	}
}

// record does Record's work under the stream's lock.
func (s *Stream) record(dst *Value, scope *Scope, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg, foreign *[3]*storage) error {
	var in [3]ir.Operand
	err := s.usable()
	for i := range args {
		v := args[i].V
		if v == nil {
			in[i] = ir.Operand{Scalar: true}
			continue
		}
		if foreign[i] == nil && err == nil {
			v, err = s.readable(v)
			args[i].V = v // follows Set
		}
		in[i] = ir.Operand{DT: v.dt, Shape: v.shape}
	}
	var dt ir.DType
	if err == nil {
		dt, shape, err = infer(op, attr, out, shape, in[:len(args)])
	}
	if err == nil {
		err = s.supported(op, dt, in[:len(args)])
	}
	if err != nil {
		for _, st := range foreign {
			if st != nil {
				st.release()
			}
		}
		return err
	}

	if op.Class() == ir.ClassView && args[0].V.state == stReady && foreign[0] == nil {
		x := args[0].V
		if view, ok := viewOf(&ir.Node{Op: op, Shape: shape, Attr: attr}, x.shape, x.mem.layout()); ok {
			s.addView(dst, scope, x.mem, view, dt, shape)
			return nil
		}
	}
	tdt := dt
	for i := range args {
		if in[i].Scalar {
			continue
		}
		tdt = in[i].DT
	}
	var ids [3]ir.Arg
	for i := range args {
		switch v := args[i].V; {
		case v == nil:
			ids[i] = ir.Arg{ID: s.q.Scalar(ir.ScalarDType(op, i, tdt, dt), args[i].Bits), Scalar: true}
		case foreign[i] != nil:
			ids[i].ID = s.foreign(foreign[i], v.dt, v.shape)
		case v.state == stVirtual:
			ids[i].ID = s.replay(v)
		case v.state == stReady:
			ids[i].ID = s.slot(v)
		default:
			ids[i].ID = v.id
		}
	}
	dst.home, dst.dt, dst.shape, dst.state, dst.gen = s, dt, shape, stPending, s.gen
	n := s.q.Next()
	n.Op, n.DT, n.Shape, n.Attr, n.NArgs, n.Args = op, dt, shape, attr, uint8(len(args)), ids
	e := s.q.Append(held{v: dst})
	dst.id = e.Slot
	s.weigh(n)
	if scope != nil {
		scope.adopt(dst)
	}
	s.step(e)
	if s.node == nil || s.dev.opts.Lines {
		s.noteLine(caller())
	}
	s.maybeCut()
	return nil
}

// noteLine remembers where the last node was recorded: for ops no plan is known
// of, so that a plan can name the lines of its ops when it fails later.
func (s *Stream) noteLine(line string) {
	for len(s.lines) < len(s.q.Nodes) {
		s.lines = append(s.lines, "")
	}
	s.lines[len(s.q.Nodes)-1] = line
}

// infer is ir.Infer behind a path for what is nearly every op: operands of one
// dtype that share one shape.
func infer(op ir.Op, attr *ir.Attr, out ir.DType, shape ir.Shape, in []ir.Operand) (ir.DType, ir.Shape, error) {
	info := op.Info()
	if info.Class == ir.ClassElementwise && (info.Out == ir.OutSame || info.Out == ir.OutBool) && len(in) == info.Arity {
		var first *ir.Operand
		for i := range in {
			o := &in[i]
			switch {
			case o.Scalar:
			case first == nil:
				first = o
			case o.DT != first.DT || !o.Shape.Equal(first.Shape):
				return ir.Infer(op, attr, out, shape, in...)
			}
		}
		if first != nil && info.In.Has(first.DT) {
			if info.Out == ir.OutBool {
				return ir.Bool, first.Shape, nil
			}
			return first.DT, first.Shape, nil
		}
	}
	return ir.Infer(op, attr, out, shape, in...)
}

// supported reports a dtype the device does not have.
func (s *Stream) supported(op ir.Op, dt ir.DType, in []ir.Operand) error {
	ok := s.dev.caps.DTypes.Has(dt)
	bad := dt
	for i := range in {
		if !in[i].Scalar && !s.dev.caps.DTypes.Has(in[i].DT) {
			ok, bad = false, in[i].DT
		}
	}
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s has no %s", ir.ErrUnsupported, s.dev.name, bad)
}

// readable says whether a value of this stream can be an operand, following
// Set. The lock is held.
func (s *Stream) readable(v *Value) (*Value, error) {
	for v.state == stMoved {
		to := v.ext.to
		if to.epoch != v.ext.toEpoch || to.home != s {
			return v, fmt.Errorf("%w: its value was moved by Set and has been replaced since", ErrReleased)
		}
		v = to
	}
	switch v.state {
	case stFailed:
		return v, v.ext.err
	case stReleased:
		return v, v.ext.releasedErr()
	case stReady:
		if e := v.mem.fault.Load(); e != nil {
			return v, e
		}
	case stNone:
		return v, fmt.Errorf("%w: operand is a zero Tensor", ir.ErrUnsupported)
	}
	return v, nil
}

// Fail makes dst carry an error that the public package found itself.
func Fail(dst *Value, p Place, op string, err error, args []Arg) {
	home, scope := p.S, p.Scope
	for _, a := range args {
		if a.V != nil && a.V.home != nil {
			home, scope = a.V.home, a.V.scope.Load()
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
	if scope != nil {
		dst.scope.Store(scope) // so that descendants of it stay in the scope
	}
	if home != nil && !inherited {
		home.report(e)
	}
}

// ext is what few values have.
type ext struct {
	err     *OpError // stFailed
	recipe  *recipe  // stVirtual; shared by values with the same leaves
	to      *Value   // stMoved
	toEpoch uint32
	where   site   // stReleased: who called Release
	scope   *Scope // stReleased: whose end released it
}

func (x *ext) releasedErr() error {
	if x.scope != nil {
		return fmt.Errorf("%w, released by the end of the scope opened at %s", ErrReleased, x.scope.where)
	}
	return fmt.Errorf("%w, released at %s", ErrReleased, x.where)
}

// handOver makes a value of this stream readable by another one: it is in
// memory or will be when earlier submitted work has run. The result carries a
// reader for the caller. The stream is cut right after the producing op, a
// place that depends on the program only.
func (s *Stream) handOver(v *Value) (*storage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, err := s.readable(v)
	if err != nil {
		return nil, err
	}
	if v.state == stVirtual {
		s.replay(v)
	}
	if v.state == stPending {
		s.flushPrefix(s.entryOf(v.id)+1, segment.End{Reason: segment.ReasonHandOver, ID: v.id}, false)
		if v, err = s.readable(v); err != nil {
			return nil, err
		}
	}
	if v.state != stReady {
		return nil, runtime.ErrClosed
	}
	v.mem.retain()
	return v.mem, nil
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
