package acrosstest

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
	"github.com/millrace-go/millrace/optim"
)

// boundModels are the models of the table that can be bound.
var boundModels = []string{"dropout", "wire", "mlp", "gpt", "batchnorm", "clipnorm", "bfloat16", "dtypes", "groups", "tied", "buffers"}

// BoundSteps lists cases that compare bound steps with the oracle, of the first so many models.
func BoundSteps(models int) (all []disttest.Case) {
	for _, m := range Models() {
		if !slices.Contains(boundModels[:min(models, len(boundModels))], m.Name) {
			continue
		}
		batch := m.Batch
		m.Name += ", bound"
		m.Batch = func(step int) Batch { return batch(12 * step) } // of one size
		all = append(all, disttest.Case{Name: "across, " + m.Name, Ranks: m.Sizes(), Options: options(), Run: func(ctx context.Context, w *dist.World) error {
			want, err := oracles.of(m, w.Size())
			if err != nil {
				return err
			}
			at, err := placeOf(w.Rank())
			if err != nil {
				return err
			}
			got, err := m.bound(w, How{Buckets: 3, At: at})
			if err != nil {
				return err
			}
			return errors.Join(got.Differs(want), w.Barrier(ctx)) // ranks stay together after a value that is wrong
		}})
	}
	return all
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
