package gputest

import (
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/apitest"
)

// testEngineLimits: at each limit of a kernel and beyond, plans are built and compute the results
// of single ops.
func testEngineLimits(t *testing.T) {
	unfused, err := millrace.Open(under.device("fusion=off"))
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() { unfused.Close() })
	apitest.KernelLimits(t, openEngine(t), unfused, 1e-5, 17, 33)
}
