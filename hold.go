package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/stream"
)

// holding are the operands of an op that looks at them more than once, in handles of its
// own: whatever Set does meanwhile, it sees one value of each.
type holding struct {
	given, own [3]*Tensor
	n          int
	bad        *Tensor // the result where an operand carries an error, was released, or was never made
}

// hold has the variables, up to three, some of which may be the same tensor, point at
// handles that stay what they are until end. Ops that are made of others ask it first,
// so that errors name the op that was called.
func hold(op string, ts ...**Tensor) (h holding) {
	for _, t := range ts {
		h.add(op, t)
	}
	return h
}

func (h *holding) add(op string, t **Tensor) {
	given := *t
	if k := slices.Index(h.given[:h.n], given); k >= 0 {
		*t = h.own[k]
		return
	}
	*t = still(given)
	h.given[h.n], h.own[h.n] = given, *t
	h.n++
	if h.bad == nil {
		h.bad = unusable(op, *t)
	}
}

func (h *holding) end() { done(h.own[:h.n]...) }

// holdAll is hold for operands in a list. done ends it: a handle that is in the list
// twice ends once.
func holdAll(op string, ts []*Tensor) (own []*Tensor, bad *Tensor) {
	own = make([]*Tensor, len(ts))
	for i, t := range ts {
		if k := slices.Index(ts[:i], t); k >= 0 {
			own[i] = own[k]
			continue
		}
		own[i] = still(t)
		if bad == nil {
			bad = unusable(op, own[i])
		}
	}
	return own, bad
}

// still is another handle of what t is now, which done ends; nil where t is.
func still(t *Tensor) *Tensor {
	if t == nil {
		return nil
	}
	if t.v.Marks() != 0 {
		return stillFollowed(t)
	}
	r := new(Tensor)
	stream.Same(&r.v, &t.v)
	return r
}

// unusable is the result of an op on a tensor that carries an error, was released or was
// never made, else nil.
func unusable(op string, t *Tensor) *Tensor {
	if !t.made() || t.v.Cause() != nil {
		return failed(op, errNilTensor, t)
	}
	return nil
}
