package stream

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/queue"
)

// layout of a storage; the zero View is dense row-major.
func (st *storage) layout() fusion.View {
	if st.view != nil {
		return *st.view
	}
	return fusion.View{}
}

// viewOf applies a view op to memory: a change of metadata. It reports false
// where no strides describe the result (some reshapes); such a view is
// recorded like any op.
func viewOf(n *ir.Node, arg ir.Shape, v fusion.View) (fusion.View, bool) {
	if v.Stride == nil {
		v.Stride = rowMajor(arg)
	}
	out := fusion.View{Offset: v.Offset, Stride: make([]int64, len(n.Shape)), Stages: v.Stages}
	switch n.Op {
	case ir.Permute:
		for i, a := range n.Attr.Axes {
			out.Stride[i] = v.Stride[a]
		}
	case ir.Slice:
		for i, st := range v.Stride {
			out.Offset += int64(n.Attr.Start[i]) * st
			out.Stride[i] = int64(n.Attr.Step[i]) * st
		}
	case ir.Expand:
		lead := len(n.Shape) - len(arg)
		for i, d := range arg {
			if d == n.Shape[lead+i] {
				out.Stride[lead+i] = v.Stride[i]
			}
		}
	case ir.Window:
		ax := n.Attr.Axes[0]
		copy(out.Stride, v.Stride[:ax])
		out.Stride[ax], out.Stride[ax+1] = v.Stride[ax]*int64(n.Attr.Step[0]), v.Stride[ax]*int64(n.Attr.Step[1])
		copy(out.Stride[ax+2:], v.Stride[ax+1:])
	case ir.Reshape:
		return out, restride(arg, v.Stride, n.Shape, out.Stride)
	default:
		return out, false
	}
	return out, true
}

// repeated is how many elements an operand has in memory where its view repeats
// them, else 0.
func repeated(sl *queue.Slot[held]) int64 {
	if sl.H.st == nil || sl.H.st.view == nil {
		return 0
	}
	v, n, fewer := sl.H.st.view, int64(1), false
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

func rowMajor(shape ir.Shape) []int64 {
	st := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		n *= int64(shape[i])
	}
	return st
}

// restride finds strides for a reshape: dims are paired in groups of equal
// products, and within a group the operand's dims must be one run in memory.
func restride(from ir.Shape, fst []int64, to ir.Shape, tst []int64) bool {
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		for i < len(from) && from[i] == 1 {
			i++
		}
		for j < len(to) && to[j] == 1 {
			tst[j] = 0
			j++
		}
		if i == len(from) || j == len(to) {
			return i == len(from) && j == len(to)
		}
		i0, j0 := i, j
		p, q := from[i], to[j]
		i, j = i+1, j+1
		for p != q {
			if p < q {
				if i == len(from) {
					return false
				}
				p, i = p*from[i], i+1
			} else {
				if j == len(to) {
					return false
				}
				q, j = q*to[j], j+1
			}
		}
		inner := -1 // last dim of the group that moves
		for k := i - 1; k >= i0; k-- {
			if from[k] == 1 {
				continue
			}
			if inner >= 0 && fst[k] != fst[inner]*int64(from[inner]) {
				return false
			}
			inner = k
		}
		last := i - 1
		for last > i0 && from[last] == 1 {
			last--
		}
		st := fst[last]
		for k := j - 1; k >= j0; k-- {
			tst[k] = st
			st *= int64(to[k])
		}
	}
	return true
}

// view makes dst a view of an operand that is in memory, which takes no lock: of a
// tensor that others compute with, such as weights, and of no scope. An error, but for
// errNotIt, says that it is to be done another way.
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
			if view, ok := viewOf(&ir.Node{Op: op, Shape: form.Shape, Attr: attr}, v.form.Shape, st.layout()); ok {
				s.addView(dst, st, view, v.dt, form)
				return nil
			}
			err = errMoved
		}
	}
	st.release()
	return err
}

// addView makes dst a view of memory: nothing is recorded. The caller's reader becomes
// the view's.
func (s *Stream) addView(dst *Value, st *storage, view fusion.View, dt ir.DType, form *queue.Form) {
	s.dev.stats.ops.Add(1)
	st.count(handles)
	dst.home, dst.dt, dst.form, dst.state = s, dt, form, stReady
	dst.mem.Store(&storage{block: st.block, view: &view})
	s.came(dst, false)
}
