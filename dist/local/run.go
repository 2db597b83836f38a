package local

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace-go/millrace/dist"
)

// Run runs f on this many ranks, each a goroutine with a World, and returns the errors of all ranks.
// A rank whose f fails tells the others so.
func Run(ctx context.Context, ranks int, o dist.Options, f func(context.Context, *dist.World) error) error {
	return New(ranks).Run(ctx, o, f)
}

// Run is the function [Run] over these links. A Net runs once.
func (n *Net) Run(ctx context.Context, o dist.Options, f func(context.Context, *dist.World) error) error {
	errs := make([]error, n.Size())
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			if err := n.rank(ctx, r, o, f); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (n *Net) rank(ctx context.Context, r int, o dist.Options, f func(context.Context, *dist.World) error) error {
	o.Opener = n.Opener(r)
	w, err := dist.Open(ctx, o)
	if err != nil {
		return err
	}
	err = f(ctx, w)
	if err != nil {
		w.Fail(err)
	}
	if end := w.Close(); err == nil {
		err = end
	}
	return err
}
