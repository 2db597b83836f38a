package acrosstest

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
	"github.com/millrace-go/millrace/dist/local"
)

var long = os.Getenv("MILLRACE_LONG") != ""

// start runs a case on goroutines.
func start(c disttest.Case, ranks int) []error {
	n := local.New(ranks)
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
			if errs[r] = c.Run(ctx, w); errs[r] != nil && !c.Fails {
				w.Fail(errs[r])
			}
			if err := w.Close(); err != nil && !c.Fails && errs[r] == nil {
				errs[r] = err
			}
		})
	}
	all.Wait()
	return errs
}

// TestAcross: models, bound ones and random programs have the oracle's bits for every number of ranks
// and in every way to run them, and mistakes are errors of all ranks. MILLRACE_LONG tries all ways and many
// more programs.
func TestAcross(t *testing.T) {
	ways, programs := 2, 8
	switch {
	case long:
		ways, programs = len(everyWay), 400
	case testing.Short():
		ways, programs = 1, 4
	}
	disttest.Run(t, slices.Concat(Digests(ways, programs), BoundSteps(len(boundModels)), Mistakes()), func(_ *testing.T, c disttest.Case, ranks int) []error { return start(c, ranks) })
}
