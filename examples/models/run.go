package models

import (
	"context"
	"iter"
	"math/rand/v2"

	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/nn"
)

// Count is the number of a model's parameters; what several layers share counts once.
func Count(model any) (n int) {
	for _, p := range nn.Params(model) {
		n += p.Tensor().Len()
	}
	return n
}

// Steps gives n batches of a loader, of as many epochs as that takes.
func Steps(ctx context.Context, l *data.Loader, n int) iter.Seq2[*data.Batch, error] {
	return func(yield func(*data.Batch, error) bool) {
		for n > 0 {
			for b, err := range l.Batches(ctx) {
				if n--; !yield(b, err) || err != nil {
					return
				}
				if n == 0 {
					break
				}
			}
		}
	}
}

// Draw is one of the symbols that p has the probabilities of.
func Draw(p []float32, r *rand.Rand) int {
	i, u := 0, r.Float32()
	for i < len(p)-1 && u >= p[i] {
		u -= p[i]
		i++
	}
	return i
}
