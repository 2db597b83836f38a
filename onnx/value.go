package onnx

import (
	"bytes"
	"errors"
	"sync"

	"github.com/millrace-go/millrace"
)

var errLarge = errors.New("a value is too large for the host")

// value is the value of one name of a graph: a tensor, elements on the host, or both. An absent
// optional input is nil.
type value struct {
	h *host

	owner *frame // the frame whose node made it, which releases it; nil for others
	names int    // names of the owner that have it

	mu sync.Mutex // guards t of a value that has h
	t  *millrace.Tensor
	on millrace.Place // where t is made from h
}

func device(t *millrace.Tensor) *value { return &value{t: t} }

func onHost(h *host) *value { return &value{h: h} }

func (v *value) dtype() millrace.DType {
	if v.h != nil {
		return v.h.dt
	}
	return v.t.DType()
}

func (v *value) shape() []int {
	if v.h != nil {
		return v.h.dims
	}
	return v.t.Shape()
}

// has reports whether the value already has this tensor.
func (v *value) has(t *millrace.Tensor) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.t == t
}

// tensor returns the tensor, which is made in the place p unless the value belongs to the model.
func (v *value) tensor(p millrace.Place) (*millrace.Tensor, error) {
	if v.h == nil {
		return v.t, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.t == nil {
		if v.on != nil {
			p = v.on
		}
		t, err := millrace.FromReaderOn(p, bytes.NewReader(v.h.bytes()), v.h.dt, v.h.dims...)
		if err != nil {
			return nil, err
		}
		v.t = t
	}
	return v.t, nil
}
