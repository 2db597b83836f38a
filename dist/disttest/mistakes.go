package disttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

// mistake is a case that ends the World: on the last rank, odd runs in place of even, and every
// rank must see an error of a kind that says parts.
func mistake(name string, is func(error) bool, parts []string, even, odd func(ctx context.Context, w *dist.World) error) Case {
	return Case{Name: name, Ranks: several, Fails: true, Run: func(ctx context.Context, w *dist.World) error {
		run := even
		if w.Rank() == w.Size()-1 {
			run = odd
		}
		err := w.Barrier(ctx)
		begun := time.Now()
		if err == nil { // otherwise the last rank was so fast that its mistake is known already
			err = run(ctx, w)
		}
		if took := time.Since(begun); took > Patience {
			return fmt.Errorf("it took %v until the error %v", took, err)
		}
		if err := want(err, is, parts...); err != nil {
			return err
		}
		if w.Err() == nil || w.Barrier(ctx) == nil {
			return errors.New("the World goes on")
		}
		return nil
	}}
}

// reduce is an AllReduce of ones.
func reduce(dt millrace.DType, shape ...int) func(context.Context, *dist.World) error {
	return func(_ context.Context, w *dist.World) error {
		t := millrace.OnesOn(place(), dt, shape...)
		defer t.Release()
		r := w.AllReduce(t)
		defer r.Release()
		return r.Eval()
	}
}

// scatter is a ReduceScatter of a row for each rank, and more.
func scatter(more int) func(context.Context, *dist.World) error {
	return func(_ context.Context, w *dist.World) error {
		t := millrace.OnesOn(place(), millrace.Float32, w.Size()+more)
		defer t.Release()
		r := w.ReduceScatter(t)
		defer r.Release()
		return r.Eval()
	}
}

func barrier(ctx context.Context, w *dist.World) error { return w.Barrier(ctx) }

// isFailed is a RankError of a rank that failed.
func isFailed(err error) bool {
	e, ok := errors.AsType[*dist.RankError](err)
	return ok && e.State == dist.Failed
}

var errOwn = errors.New("the disk is on fire")

func mistakes() []Case {
	cases := []Case{
		mistake("other shapes", isMismatch, []string{"allreduce", "float32 [3 4]", "float32 [4 3]"},
			reduce(millrace.Float32, 3, 4), reduce(millrace.Float32, 4, 3)),
		mistake("other dtypes", isMismatch, []string{"allreduce", "float32 [3]", "float64 [3]"},
			reduce(millrace.Float32, 3), reduce(millrace.Float64, 3)),
		mistake("another order", isMismatch, []string{"allreduce", "barrier"}, reduce(millrace.Float32, 3), barrier),
		mistake("one call too many", isMismatch, []string{"allreduce", "close"},
			reduce(millrace.Float32, 3), func(_ context.Context, w *dist.World) error { return w.Close() }),
		mistake("an operand's error", isFailed, []string{"broadcast", "mistakes.go"},
			reduce(millrace.Float32, 3), func(ctx context.Context, w *dist.World) error {
				on := place()
				x := millrace.OnesOn(on, millrace.Float32, 3)
				defer x.Release()
				bad := x.Add(millrace.OnesOn(on, millrace.Float32, 2))
				r := w.AllReduce(bad)
				if !errors.Is(r.Err(), millrace.ErrShape) {
					return fmt.Errorf("the result's error is %w", r.Err())
				}
				return w.Barrier(ctx)
			}),
		mistake("rows of one rank", isMismatch, []string{"reducescatter", "a mistake", "axis 0"},
			scatter(0), func(ctx context.Context, w *dist.World) error {
				if err := want(scatter(1)(ctx, w), isShape); err != nil {
					return err
				}
				return scatter(0)(ctx, w) // it does not take the place of the first call
			}),
		mistake("no tensor on one rank", isMismatch, []string{"allreduce", "a mistake", "nil tensor"},
			reduce(millrace.Float32, 3), func(ctx context.Context, w *dist.World) error {
				if w.AllReduce(nil).Err() == nil {
					return errors.New("no tensor has a sum")
				}
				return reduce(millrace.Float32, 3)(ctx, w)
			}),
		mistake("a rank that fails", isFailed, []string{errOwn.Error()},
			barrier, func(_ context.Context, w *dist.World) error {
				w.Fail(errOwn)
				if !errors.Is(w.Err(), errOwn) {
					return fmt.Errorf("the World's error does not wrap the rank's: %w", w.Err())
				}
				return w.Err()
			}),
	}
	alike := Case{Name: "mistakes of all ranks", Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
		on := place()
		scalar, rows := millrace.OnesOn(on, millrace.Float32), millrace.OnesOn(on, millrace.Float32, 7*w.Size()+1)
		defer scalar.Release()
		defer rows.Release()
		flags := rows.Cast(millrace.Bool)
		defer flags.Release()
		for _, c := range []struct {
			r    *millrace.Tensor
			is   func(error) bool
			says string
		}{
			{w.AllGather(scalar), isShape, "0-d"},
			{w.ReduceScatter(scalar), isShape, "axis 0"},
			{w.AllToAll(scalar), isShape, "axis 0"},
			{w.Broadcast(rows, w.Size()), isIndex, "rank"},
			{w.Broadcast(rows, -1), isIndex, "rank"},
			{w.AllReduce(flags), isDType, "bool"},
			{w.AllReduce(nil), any_, ""},
			{w.AllReduce(new(millrace.Tensor)), any_, ""},
		} {
			if err := want(c.r.Err(), c.is, c.says); err != nil {
				return err
			}
		}
		return w.Barrier(ctx)
	}}
	return append(cases, alike)
}
