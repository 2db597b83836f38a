package acrosstest

import (
	"context"
	"math/bits"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/optim"
)

// first is a batch's first rows.
func (b Batch) first(rows int) Batch {
	c := Batch{Rows: rows}
	for _, a := range b.In {
		size := 1
		for _, d := range a.Row {
			size *= d
		}
		if !a.Shared {
			a.Floats, a.Ints = a.Floats[:min(len(a.Floats), rows*size)], a.Ints[:min(len(a.Ints), rows*size)]
		}
		c.In = append(c.In, a)
	}
	return c
}

func place(t testing.TB, threads int) millrace.Place {
	p, err := Place(threads)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOracle: with one leaf of 2, 4 or 8 rows, where weights and their division are exact, the oracle
// has the bits of a plain step.
func TestOracle(t *testing.T) {
	for _, m := range Models() {
		batch := m.Batch
		m.Leaves, m.Wire = 1, millrace.Invalid
		m.Batch = func(step int) Batch {
			b := batch(step)
			return b.first(1 << (bits.Len(uint(b.Rows)) - 1))
		}
		t.Run(m.Name, func(t *testing.T) {
			want, err := m.Oracle(place(t, 1), 1)
			if err != nil {
				t.Fatal(err)
			}
			at := place(t, 1)
			x := m.New(at)
			s := x.Optimizer.Step(x.Loss, m.plain(x)...)
			var losses []*millrace.Tensor
			for step := range m.Steps {
				if m.Before != nil {
					m.Before(x, step)
				}
				b := m.Batch(step)
				loss, err := s.Run(context.Background(), b.Tensors(at, 0, b.Rows)...)
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, loss)
			}
			got, err := x.result(losses)
			if err != nil {
				t.Fatal(err)
			}
			if err := got.Without(".grad.").Differs(want); err != nil {
				t.Error(err)
			}
		})
	}
}

// plain are the options of the model's step on one process.
func (m Model) plain(t *Training) []optim.StepOption {
	return m.options(t, nil, How{})[1:]
}
