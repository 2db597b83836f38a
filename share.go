package millrace

import (
	"github.com/millrace-go/millrace/internal/handle"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/stream"
)

// init sets the hooks by which other packages of this module work with tensors. Only host
// adapters may use memory of Go's heap, because they know when the program may write to it: see
// internal/handle.
func init() {
	handle.Drop = func(t any) { done(t.(*Tensor)) }
	handle.Shares = func(d any, dt ir.DType) bool { return d.(*Device).d.Shares(dt) }
	handle.Share = func(d any, dt ir.DType, shape []int) (any, []byte, error) {
		p, err := d.(*Device).place()
		if err != nil {
			return nil, nil, err
		}
		t := new(Tensor)
		data, err := stream.Share(&t.v, p, dt, ir.Shape(shape))
		return t, data, err
	}
	handle.Value = func(t any) any { return t.(*Tensor).v.Now() }
	handle.Fail = func(op string, err error, operands []any) any {
		ts := make([]*Tensor, len(operands))
		for i, t := range operands {
			ts[i] = t.(*Tensor)
		}
		return failed(op, err, ts...)
	}
	handle.Site = func(scope any, text string) { scope.(*Scope).sc.SetSite(text) }
	handle.Beside = func(tensors []any) (any, bool) {
		hs := make([]*stream.Value, len(tensors))
		for i, t := range tensors {
			hs[i] = &t.(*Tensor).v
		}
		p, ok := stream.Beside(hs...)
		return beside(p), ok
	}
	handle.Lend = func(t any, use func(dev, buf any, off int64) error) error {
		x, ok := t.(*Tensor)
		if !ok || !x.made() {
			return failure("lend", errNilTensor)
		}
		err := stream.Lend(&x.v, func(dev runtime.Device, b runtime.Buffer, off int64) error { return use(dev, b, off) })
		if err != nil {
			return failure("lend", err, x)
		}
		return nil
	}
	handle.Shared = func(t any) ([]byte, bool) { return stream.Shared(&t.(*Tensor).v) }
}

// beside is a place that was derived from tensors.
type beside stream.Place

func (b beside) place() (stream.Place, error) { return stream.Place(b), nil }
