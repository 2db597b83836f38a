package millrace

import (
	"slices"
	"unsafe"

	"github.com/millrace-go/millrace/internal/follow"
	"github.com/millrace-go/millrace/stream"
)

// A Recording is not differentiated: the ops that autodiff followed in its function end with it.
// But its results, and the tensors that it sets, may depend on watched tensors, and their
// gradient must not silently be zero. In every run they therefore carry a node that makes the
// gradient an error.

// sealed has the nodes of one call of a Recording's function.
type sealed struct {
	on       bool
	before   uint64
	carriers []*stream.Carrier // of results, nil for those that are not followed
}

// begin is called before the function.
func (x *sealed) begin() {
	if x.on = follow.Seal != nil; x.on {
		x.before = follow.Count()
	}
}

// results returns the function's results. A result that the function computed from watched
// tensors is replaced by one that carries a node of the Recording.
func (x *sealed) results(ts []*Tensor) []*Tensor {
	if !x.on || !followed(ts...) {
		return ts
	}
	list := make([]any, len(ts))
	for i, t := range ts {
		list[i] = t
	}
	nodes, made := follow.Seal(x.before, list)
	out := slices.Clone(ts)
	x.carriers = make([]*stream.Carrier, len(ts))
	for i, t := range ts {
		if nodes[i] == nil {
			continue
		}
		x.carriers[i] = carrierOf(nodes[i])
		if k := slices.Index(ts, t); k < i {
			out[i] = out[k]
		} else if made[i] {
			p := plainly(t)
			out[i] = p.Reshape(p.shape()...)
			done(p)
			out[i].carry(nodes[i])
		}
	}
	return out
}

// sets does the same for handles from outside that the function set to results.
func (x *sealed) sets(taping *stream.Taping) {
	if !x.on {
		return
	}
	for _, h := range taping.Sets() {
		unsign(h)
		if h.Marks()&stream.MarkLeaf != 0 {
			continue
		}
		var one sealed
		one.on, one.before = true, x.before
		t := tensorOf(h)
		if r := one.results([]*Tensor{t})[0]; len(one.carriers) > 0 {
			if r != t {
				unsign(&r.v)
				t.Set(r)
				done(r)
			}
			taping.Carry(h, one.carriers[0])
		}
	}
}

// carry makes the results of later runs carry the nodes too.
func (x *sealed) carry(tape *stream.Tape) {
	if tape == nil {
		return
	}
	for i, c := range x.carriers {
		if c != nil {
			tape.Carry(i, c)
		}
	}
}

// carrierOf returns a Carrier, which makes values that carry a node.
func carrierOf(node any) *stream.Carrier {
	return &stream.Carrier{
		New: func() *stream.Value {
			r := newRoomy()
			r.carry(node)
			return &r.v
		},
		Has: func(v *stream.Value) bool { return (*roomy)(unsafe.Pointer(v)).node == node },
	}
}

// resultOf returns a new tensor for a result of a tape.
func resultOf(tape *stream.Tape, i int) *Tensor {
	if c := tape.Carrier(i); c != nil {
		return tensorOf(c.New())
	}
	return new(Tensor)
}

// inGraph reports whether gradients pass through t: it is followed, and is not a result of a
// Recording.
func inGraph(t *Tensor) bool {
	node := t.node()
	return node != nil && !follow.Sealed(node)
}
