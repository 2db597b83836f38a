package disttest

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

// tapes: a Recording with collectives has new values in each run, for other sizes too, and handles
// that it sets follow. A bound one has the same.
func tapes() []Case {
	return []Case{{Name: "recorded", Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
		d, err := millrace.Default()
		if err != nil {
			return err
		}
		s := d.NewStream()
		total := millrace.ZerosOn(s, millrace.Float32, 1)
		defer total.Release()
		step := recorded(w, total)
		defer step.Release()
		n := w.Size()
		had := d.Stats().Recordings
		want := float32(0)
		for run := range 12 {
			size := 3 + run/6
			x := millrace.FullOn(s, millrace.Float32, float64(w.Rank()+run), size)
			out, err := step.Run(ctx, x)
			x.Release()
			if err != nil {
				return err
			}
			args := float32(n*run + n*(n-1)/2) // the sum of the arguments
			for i, value := range []float32{args + float32(n), args, -2 * (args + float32(n)), float32(n) * want} {
				got, err := millrace.Values[float32](out[i])
				if err != nil {
					return err
				}
				if slices.ContainsFunc(got, func(v float32) bool { return v != value }) {
					return fmt.Errorf("run %d: result %d is %v, want %v", run, i, got, value)
				}
				out[i].Release()
			}
			want += float32(size) * (args + float32(n))
		}
		if got, err := millrace.Item[float32](total); err != nil || got != want {
			return fmt.Errorf("the total is %v, %v, want %v", got, err, want)
		}
		if made := d.Stats().Recordings - had; n == 1 && made != 2 {
			return fmt.Errorf("%d recordings of two sizes", made)
		}
		return w.Barrier(ctx)
	}}, {Name: "bound", Ranks: Sizes, Run: func(ctx context.Context, w *dist.World) error {
		d, err := millrace.Default()
		if err != nil {
			return err
		}
		s := d.NewStream()
		total := millrace.ZerosOn(s, millrace.Float32, 1)
		defer total.Release()
		x := millrace.ZerosOn(s, millrace.Float32, 3)
		defer x.Release()
		step := recorded(w, total)
		defer step.Release()
		b, err := step.BindWith(millrace.BindOptions{On: s}, x)
		if err != nil {
			return err
		}
		defer b.Close()
		n := w.Size()
		want := float32(0)
		for run := range 40 {
			own := float32(w.Rank() + run)
			if err := millrace.SetInput(b, 0, own, own, own); err != nil {
				return err
			}
			if err := b.Run(); err != nil {
				return err
			}
			args := float32(n*run + n*(n-1)/2)
			for i, value := range []float32{args + float32(n), args, -2 * (args + float32(n)), float32(n) * want} {
				got, err := millrace.Values[float32](b.Results()[i])
				if err != nil {
					return err
				}
				if slices.ContainsFunc(got, func(v float32) bool { return v != value }) {
					return fmt.Errorf("run %d: result %d is %v, want %v", run, i, got, value)
				}
			}
			want += 3 * (args + float32(n))
		}
		return w.Barrier(ctx)
	}}}
}

// recorded is a Recording with a collective of each kind of operand, which adds to total.
func recorded(w *dist.World, total *millrace.Tensor) *millrace.Recording {
	return millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		x := in[0].AddScalar(1)
		sum := w.AllReduce(x)              // of a product
		twice := w.AllReduce(in[0])        // of an argument
		first := w.Broadcast(sum.Neg(), 0) // of what depends on another call
		w.AllReduce(x.MulScalar(5))        // of which nothing is read
		before := w.AllReduce(total)       // of a handle that is set
		total.Set(total.Add(sum.Sum().Reshape(1)))
		return []*millrace.Tensor{sum, twice, first.MulScalar(2), before}, nil
	})
}
