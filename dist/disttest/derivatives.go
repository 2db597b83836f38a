package disttest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/autodiff"
	"github.com/millrace-go/millrace/dist"
)

func isDType(err error) bool { return errors.Is(err, millrace.ErrDType) }
func isShape(err error) bool { return errors.Is(err, millrace.ErrShape) }
func isIndex(err error) bool { return errors.Is(err, millrace.ErrIndex) }

// derivatives: the total of all ranks' losses is a function of all ranks' tensors. Rank r weighs its
// result's row k with 100·r+k, and the derivative by each row of the operand is what that row
// contributes on all ranks.
func derivatives() []Case {
	weight := func(rank, row int) float32 { return float32(100*rank + row) }
	total := func(n, row int) (s float32) {
		for r := range n {
			s += weight(r, row)
		}
		return s
	}
	rows := func(n int) int { return 2 * n }
	wants := map[string]func(rank, n, row int) float32{
		"allreduce":     func(_, n, row int) float32 { return total(n, row) },
		"reducescatter": func(_, n, row int) float32 { return weight(row/2, row%2) },
		"allgather":     func(rank, n, row int) float32 { return total(n, rank*rows(n)+row) },
		"alltoall":      func(rank, n, row int) float32 { return weight(row/2, 2*rank+row%2) },
		"broadcast": func(rank, n, row int) float32 {
			if rank != n-1 {
				return 0
			}
			return total(n, row)
		},
	}
	var cases []Case
	for _, o := range ops {
		cases = append(cases, Case{Name: "derivative of " + o.name, Ranks: Sizes, Run: func(_ context.Context, w *dist.World) error {
			n, rank := w.Size(), w.Rank()
			on := place()
			x := millrace.OnesOn(on, millrace.Float32, rows(n), 1)
			defer x.Release()
			var ws, want []float32
			for row := range o.shape(n, rows(n)) {
				ws = append(ws, weight(rank, row))
			}
			for row := range rows(n) {
				want = append(want, wants[o.name](rank, n, row))
			}
			scale := millrace.FromSliceOn(on, ws, len(ws), 1)
			defer scale.Release()
			watched := autodiff.Watch(x)
			loss := o.run(w, watched).Mul(scale).Sum()
			ds, err := autodiff.Grad(loss, watched)
			if err != nil {
				return err
			}
			got, err := millrace.Values[float32](ds[0])
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("the derivative is %v, want %v", got, want)
			}
			return err
		}})
	}
	return cases
}
