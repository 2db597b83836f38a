package acrosstest

import (
	"context"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/optim"
)

// TestBound: bound steps have the oracle's bits.
func TestBound(t *testing.T) {
	for _, name := range []string{"mlp", "gpt", "dropout", "batchnorm", "clipnorm", "bfloat16", "dtypes", "groups", "tied", "buffers", "wire"} {
		m := model(t, name)
		batch := m.Batch
		m.Batch = func(step int) Batch { return batch(12 * step) } // of one size
		want, err := m.Oracle(place(t, 1), 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 2, 4} {
			ranks(t, n, func(ctx context.Context, w *dist.World, at millrace.Place) error {
				got, err := m.bound(w, How{Buckets: 3, At: at})
				if err == nil {
					err = got.Differs(want)
				}
				return err
			})
			if t.Failed() {
				t.Fatalf("%s, %d ranks", name, n)
			}
		}
	}
}

// bound trains the model on a rank by a bound step.
func (m Model) bound(w *dist.World, h How) (Result, error) {
	t := m.New(h.At)
	s := t.Optimizer.Step(t.Loss, m.options(t, w, h)...)
	defer s.Close()
	b := m.Batch(0)
	at := Bounds(b.Rows, w.Size())
	from, to := at[w.Rank()], at[w.Rank()+1]
	bound, err := s.Bind(b.Tensors(h.At, from, to)...)
	if err != nil {
		return Result{}, err
	}
	defer bound.Close()
	var losses []*millrace.Tensor
	for step := range m.Steps {
		for i, a := range m.Batch(step).In {
			size := 1
			for _, d := range a.Row {
				size *= d
			}
			switch {
			case a.Shared:
				err = optim.SetInput(bound, i, a.Floats[0])
			case a.Ints != nil:
				err = optim.SetInput(bound, i, a.Ints[from*size:to*size]...)
			default:
				err = optim.SetInput(bound, i, a.Floats[from*size:to*size]...)
			}
			if err != nil {
				return Result{}, err
			}
		}
		if err := bound.Run(); err != nil {
			return Result{}, err
		}
		v, err := millrace.Item[float64](bound.Loss().Cast(millrace.Float64))
		if err != nil {
			return Result{}, err
		}
		losses = append(losses, millrace.ScalarOn(h.At, v))
	}
	return t.result(losses)
}
