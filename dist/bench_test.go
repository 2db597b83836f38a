package dist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

// BenchmarkBarrier is the time of a head on two ranks that are goroutines.
func BenchmarkBarrier(b *testing.B) {
	ws, errs := open(2, func(int, *dist.Options) {})
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	each(ws, func(w *dist.World) {
		for range b.N {
			if err := w.Barrier(context.Background()); err != nil {
				b.Error(err)
			}
		}
		w.Close()
	})
}

// BenchmarkAllReduce sums tensors of two ranks that are goroutines.
func BenchmarkAllReduce(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 18, 1 << 22} {
		b.Run(fmt.Sprint(4*n), func(b *testing.B) {
			ws, errs := open(2, func(int, *dist.Options) {})
			if err := errors.Join(errs...); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(4 * n))
			each(ws, func(w *dist.World) {
				d, err := millrace.Default()
				if err != nil {
					b.Error(err)
					return
				}
				x := millrace.OnesOn(d.NewStream(), millrace.Float32, n)
				defer x.Release()
				for range b.N {
					r := w.AllReduce(x)
					if err := r.Eval(); err != nil {
						b.Error(err)
					}
					r.Release()
				}
				w.Close()
			})
		})
	}
}
