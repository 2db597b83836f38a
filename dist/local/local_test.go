package local

import (
	"testing"

	"github.com/millrace-go/millrace/dist/disttest"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

func TestSuite(t *testing.T) {
	disttest.Run(t, disttest.Cases(), func(_ *testing.T, c disttest.Case, ranks int) []error {
		return disttest.Start(c, ranks, New(ranks).Opener)
	})
}
