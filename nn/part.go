package nn

import (
	"bytes"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/hold"
)

func init() {
	hold.MarkPart = func(p any, part *hold.Part) { p.(*Param).part = part }
	hold.PartOf = func(p any) *hold.Part { return p.(*Param).part }
	hold.SetPart = func(p, whole any) error { return p.(*Param).set(whole.(*millrace.Tensor)) }
}

// shape is the shape that a parameter has in a file.
func (p *Param) shape() []int {
	if p.part != nil {
		return p.part.Shape
	}
	return p.t.Shape()
}

// set gives a parameter the value of a tensor with the file's shape. A part gets a copy, as a view
// would keep the whole in memory. An error is that of either tensor.
func (p *Param) set(t *millrace.Tensor) error {
	if p.part == nil {
		p.t.Set(t)
		return nil
	}
	if err := p.t.Err(); err != nil {
		return err // its length is unknown
	}
	flat := t.Reshape(t.Len())
	defer drop(flat)
	mine := flat.Slice(millrace.R(p.part.From, p.part.To))
	defer drop(mine)
	var b bytes.Buffer
	if _, err := mine.WriteTo(&b); err != nil {
		return err
	}
	b.Write(make([]byte, p.t.Len()*t.DType().Size()-b.Len()))
	now, err := millrace.FromReaderOn(p.t.Stream(), &b, t.DType(), p.t.Len())
	if err != nil {
		return err
	}
	p.t.Set(now)
	drop(now)
	return nil
}

// complete returns an error if a parameter is a part.
func (w *walker) complete() error {
	for _, n := range w.found {
		if n.part != nil {
			return fmt.Errorf("%q: %w: this rank has only a part of it (optim.Ranks.Sharded); dist.World.Save writes the whole", n.Name, millrace.ErrUnsupported)
		}
	}
	return nil
}
