package devicetest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// Open opens a device, or skips with the reason. If MILLRACE_REQUIRE names its driver, a missing
// device is a failure.
func Open(t *testing.T, spec string) *millrace.Device {
	t.Helper()
	d, err := millrace.Open(spec)
	if err != nil {
		driver, _, _ := strings.Cut(spec, ":")
		if slices.Contains(strings.Split(os.Getenv("MILLRACE_REQUIRE"), ","), driver) || !errors.Is(err, millrace.ErrNoDriver) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
