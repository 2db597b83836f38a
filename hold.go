package millrace

import (
	"slices"

	"github.com/millrace-go/millrace/stream"
)

// holding has the operands of an op that looks at them more than once, in handles of its own. The
// op sees one value of each operand, even if another goroutine calls Set meanwhile.
type holding struct {
	given, own [3]*Tensor
	n          int
	bad        *Tensor // the result where an operand carries an error, was released, or was never made
}

// hold makes the variables, up to three, point at handles that keep their value until end.
// Several variables may be the same tensor. An op that calls other ops calls hold first, so that
// errors name the op that the program called.
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

// holdAll is hold for operands in a list. Call done on the list at the end; done ends a handle
// only once, even if it is in the list twice.
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

// still returns another handle of the value that t names now, or nil if t is nil. done ends the
// handle.
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

// unusable returns the result of an op on a tensor that carries an error, was released or was
// never made. For other tensors it returns nil.
func unusable(op string, t *Tensor) *Tensor {
	if !t.made() || t.v.Cause() != nil {
		return failed(op, errNilTensor, t)
	}
	return nil
}
