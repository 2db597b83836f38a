package fusion

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/segment"
)

// A concatenation can be written piece by piece. A group for each operand copies or computes the
// operand and writes it to its place in the result. Then every element is read and written once,
// however many operands there are, and no guard is evaluated. The other way is one kernel that
// selects among guarded reads. It needs fewer launches, which is better for small tensors. Groups
// of pieces can join other groups: if the op that makes an operand joins the group of its piece,
// the operand need not be in memory.

// maxPieces bounds the pieces of a tensor. Concatenations beyond it are computed within the kernel
// of a piece, by selection.
const maxPieces = 512

// piece extends m, which leads to operand arg of a Concat, up to the Concat's result.
func (ms *mapSet) piece(m *indexMap, def int32, arg int) *indexMap {
	return ms.push(m, mapStep{kind: stepPiece, from: m.to, to: ms.class.of[ms.seg.Out[def]], axes: []int{arg}, node: def,
		hops: []Hop{{Node: int(def), Arg: arg, Up: true}}})
}

// inPiece reports a map that stays within one operand of a Concat. It returns that operand and the
// map to it.
func (ms *mapSet) inPiece(m *indexMap, def int32) (own *indexMap, arg int, ok bool) {
	last := len(m.steps) - 1
	if last < 0 || m.steps[last].kind != stepPiece || m.steps[last].node != def {
		return nil, 0, false
	}
	return m.before, m.steps[last].axes[0], true
}

// whole is m without the piece steps at its end: the map to the operand that is the piece.
func (ms *mapSet) whole(m *indexMap) *indexMap {
	n := len(m.steps)
	for n > 0 && m.steps[n-1].kind == stepPiece {
		n--
	}
	if n == len(m.steps) {
		return m
	}
	return m.prefix(n)
}

// pieced reports a map that leads to a part of a tensor only.
func (m *indexMap) pieced() bool {
	return slices.ContainsFunc(m.steps, func(s mapStep) bool { return s.kind == stepPiece })
}

// pieced reports an output that writes only a part of its tensor.
func (o *Operand) pieced(seg *segment.Segment) bool {
	return slices.ContainsFunc(o.Path, func(h Hop) bool { return h.raises() && seg.Nodes[h.Node].Op == ir.Concat })
}

// groupsOf makes the groups that write a tensor: one group, or one per piece if that is predicted
// to be faster.
func (x *explorer) groupsOf(t int32) []*group {
	one := x.groupOf(t)
	if x.node(t).Op != ir.Concat || x.opt.Mode == Unfused {
		return []*group{one}
	}
	pieces := x.pieces(t)
	if testhook.Pieces() {
		return pieces
	}
	seconds := 0.0
	for _, g := range pieces {
		seconds += x.price(g).seconds
	}
	if x.overLimit(one) != "" {
		return pieces
	}
	launches := float64(len(pieces)-1) * x.model.launch
	elems := x.elems(t)
	if less := (x.price(one).seconds - seconds + launches) / float64(elems); less > 0 {
		x.bound(Size{Of: int(x.class.rep[x.class.of[t]]), Over: -1}, elems, 0, 0, launches/less)
	}
	if seconds < x.price(one).seconds {
		return pieces
	}
	return []*group{one}
}

// pieces makes a group for each operand of a Concat. An operand that is itself a concatenation, and
// is not stored, is replaced by its own operands.
func (x *explorer) pieces(t int32) []*group {
	type way struct {
		tensor int32
		up     []edgeTo // from the tensor up to t
	}
	list := []way{{tensor: t}}
	for i := 0; i < len(list); {
		w := list[i]
		n := x.node(w.tensor)
		if n == nil || n.Op != ir.Concat || w.tensor != t && x.stored[w.tensor] || len(list) == maxPieces {
			i++
			continue
		}
		def := x.seg.Tensors[w.tensor].Def
		both := make([]way, 2)
		for arg := range both {
			both[arg] = way{n.Args[arg].ID, append([]edgeTo{{def, arg}}, w.up...)}
		}
		list = slices.Replace(list, i, i+1, both...)
	}
	groups := make([]*group, len(list))
	for i, w := range list {
		g := &group{kind: &builders[kindElementwise], domain: x.class.of[w.tensor], over: -1}
		at := x.maps.identity(g.domain)
		for _, e := range w.up {
			at = x.maps.piece(at, e.node, e.arg)
		}
		g.roots = []root{{tensor: t, at: at}}
		groups[i] = g
	}
	return groups
}

// edgeTo names an operand of a node.
type edgeTo struct {
	node int32
	arg  int
}

// write notes that an output is written. A tensor written in pieces is complete when all its pieces
// are written.
func (v *verifier) write(o *Operand) error {
	t := o.Tensor
	if v.written[t] {
		return fmt.Errorf("tensor %d is written twice", t)
	}
	if !o.pieced(v.seg) {
		if v.pieces[t] != nil {
			return fmt.Errorf("tensor %d is written whole and in pieces", t)
		}
		v.written[t] = true
		return nil
	}
	key, of := "", int32(t)
	for _, h := range slices.Backward(o.Path) {
		if !h.raises() || v.seg.Nodes[h.Node].Op != ir.Concat {
			break
		}
		if n := &v.seg.Nodes[h.Node]; v.seg.Out[h.Node] != of || h.Arg < 0 || h.Arg >= int(n.NArgs) {
			return fmt.Errorf("tensor %d has no such piece", t)
		} else {
			of, key = n.Args[h.Arg].ID, key+string(rune('0'+h.Arg))
		}
	}
	if v.pieces == nil {
		v.pieces = map[int]map[string]bool{}
	}
	if v.pieces[t] == nil {
		v.pieces[t] = map[string]bool{}
	}
	if v.pieces[t][key] {
		return fmt.Errorf("a piece of tensor %d is written twice", t)
	}
	v.pieces[t][key] = true
	n, all := covered(v.pieces[t], "")
	v.written[t] = all
	if all && n < len(v.pieces[t]) {
		return fmt.Errorf("pieces of tensor %d overlap", t)
	}
	return nil
}

// covered reports that all pieces below a prefix are there, and their number. A piece's name is the
// list of operand numbers on the way to it.
func covered(pieces map[string]bool, prefix string) (n int, all bool) {
	if pieces[prefix] {
		return 1, true
	}
	if len(prefix) > maxPieces {
		return 0, false
	}
	for _, arg := range [...]string{"0", "1"} {
		more, ok := covered(pieces, prefix+arg)
		if !ok {
			return 0, false
		}
		n += more
	}
	return n, true
}
