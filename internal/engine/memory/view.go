package memory

import (
	"github.com/millrace-go/millrace/fusion"
	"github.com/millrace-go/millrace/ir"
)

// Layout is the view of a storage; the zero View is dense row-major.
func (st *Storage) Layout() fusion.View {
	if st.View != nil {
		return *st.View
	}
	return fusion.View{}
}

// ViewOf applies a view op to a layout, which changes metadata only. It reports false if no strides
// describe the result, as for some reshapes. The engine then records the view op as an ordinary op.
func ViewOf(n *ir.Node, arg ir.Shape, v fusion.View) (fusion.View, bool) {
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

func rowMajor(shape ir.Shape) []int64 {
	st := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		st[i] = n
		n *= int64(shape[i])
	}
	return st
}

// restride finds strides for a reshape. It pairs dims in groups of equal products; within a group
// the operand's dims must form one contiguous run.
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
		inner := -1 // last dim of the group with more than one element
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
