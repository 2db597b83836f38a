package dist

import (
	"bytes"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
	"github.com/millrace-go/millrace/nn"
)

// list is parameters as a part of nn.Save.
type list []nn.Named

// State makes the list a module.
func (l list) State() []nn.Named { return l }

// own reports parts of parameters that are divided among the ranks of another World.
func (w *World) own(params []nn.Named) error {
	for _, p := range params {
		if part := hold.PartOf(p.Param); part != nil && part.World != any(w) {
			return fmt.Errorf("%q is divided among the ranks of another World", p.Name)
		}
	}
	return nil
}

// whole returns, on rank 0, the parameters with all elements of those that are divided among the
// ranks, one after another. It runs inside a call; all tensors are computed.
func (w *World) whole(params []nn.Named) (all list, release func(), err error) {
	var made []*millrace.Tensor
	release = func() {
		for _, t := range made {
			t.Release()
		}
	}
	for _, p := range params {
		if part := hold.PartOf(p.Param); part != nil {
			t, err := w.put(p.Tensor(), part.Shape)
			if err != nil {
				release()
				return nil, nil, fmt.Errorf("%q: %w", p.Name, err)
			}
			made = append(made, t)
			p.Param = nn.NewBuffer(t)
		}
		all = append(all, p)
	}
	return all, release, nil
}

// put puts the ranks' parts together on rank 0. Other ranks get a tensor without elements.
func (w *World) put(mine *millrace.Tensor, shape []int) (*millrace.Tensor, error) {
	send := aligned(mine.Len() * mine.DType().Size())
	b := bytes.NewBuffer(send[:0])
	_, err := mine.WriteTo(b)
	if err := w.agree(err); err != nil {
		return nil, err
	}
	at := w.equal(len(send))
	recv, err := w.gather(send, at)
	if err != nil {
		return nil, err
	}
	var t *millrace.Tensor
	if w.info.Rank > 0 {
		t = millrace.Zeros(mine.DType(), 0)
	} else {
		t, err = millrace.FromReader(bytes.NewReader(recv), mine.DType(), shape...)
	}
	if err = w.agree(err); err == nil {
		return t, nil
	}
	if t != nil {
		t.Release()
	}
	return nil, err
}
