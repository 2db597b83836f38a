package local

import (
	"context"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// start runs a case on goroutines.
func start(_ *testing.T, c disttest.Case, ranks int) []error {
	n := New(ranks)
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for r := range errs {
		all.Go(func() {
			o := c.Options
			o.Opener, o.Log = n.Opener(r), func(string) {}
			ctx := context.Background()
			w, err := dist.Open(ctx, o)
			if err != nil {
				errs[r] = err
				return
			}
			errs[r] = c.Run(ctx, w)
			if err := w.Close(); err != nil && !c.Fails && errs[r] == nil {
				errs[r] = err
			}
		})
	}
	all.Wait()
	return errs
}

func TestSuite(t *testing.T) { disttest.Run(t, disttest.Cases(), start) }
