package stream

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// repeated returns the number of elements that an operand has in memory if its view repeats
// elements, else 0.
func repeated(sl *queue.Slot[held]) int64 {
	if sl.H.st == nil || sl.H.st.View == nil {
		return 0
	}
	v, n, fewer := sl.H.st.View, int64(1), false
	if len(v.Stages) > 0 || v.Stride == nil {
		return 0
	}
	for d, size := range sl.Form.Shape {
		if v.Stride[d] != 0 {
			n *= int64(size)
		} else {
			fewer = fewer || size > 1
		}
	}
	if !fewer {
		return 0
	}
	return n
}

// view makes dst a view of an operand in memory that no scope owns. It takes no lock, so that
// other streams do not slow down ops on shared tensors such as weights. If it returns an error
// other than errNotIt, the caller records the op in the usual way.
func view(dst *Value, op ir.Op, out ir.DType, shape ir.Shape, attr *ir.Attr, args []Arg) error {
	v := args[0].V.now()
	if args[0].Is != nil && v != args[0].Is {
		return errNotIt
	}
	st := v.ready()
	if st == nil {
		return errMoved
	}
	s := v.home
	err := s.usable()
	if err == nil {
		var ops operands
		var form *queue.Form
		ops[0].kind = kind{v.dt, v.form}
		_, form, err = infer(op, attr, out, shape, &ops, args)
		if err == nil {
			if view, ok := memory.ViewOf(&ir.Node{Op: op, Shape: form.Shape, Attr: attr}, v.form.Shape, st.Layout()); ok {
				s.addView(dst, v, st, view, form)
				return nil
			}
			err = errMoved
		}
	}
	st.Release()
	return err
}

// addView makes dst a view of a value's memory. Nothing is recorded. The caller's reader becomes
// the view's.
func (s *Stream) addView(dst, of *Value, st *memory.Storage, view fusion.View, form *queue.Form) {
	s.dev.Counts.Ops.Add(1)
	st.Count(memory.Handles)
	dst.home, dst.dt, dst.form, dst.state = s, of.dt, form, stReady
	dst.mem.Store(&memory.Storage{Block: st.Block, View: &view})
	s.came(dst, false, of)
}
