package acrosstest

import (
	"os"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/dist/disttest"
	"github.com/millrace-go/millrace/dist/local"
)

var long = os.Getenv("MILLRACE_LONG") != ""

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
	disttest.Run(t, slices.Concat(Digests(ways, programs), BoundSteps(len(boundModels)), Mistakes()), func(_ *testing.T, c disttest.Case, ranks int) []error {
		return disttest.Start(c, ranks, local.New(ranks).Opener)
	})
}
