//go:build !((linux || darwin || windows) && (amd64 || arm64))

package vulkan

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// TestStub: a build for a system without the binding says what it needs.
func TestStub(t *testing.T) {
	d, err := runtime.Lookup("vulkan")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(runtime.Config{})
	_, perr := d.Probe()
	for _, e := range []error{err, perr} {
		if !errors.Is(e, runtime.ErrNoDriver) || !strings.Contains(e.Error(), "amd64") {
			t.Errorf("%v", e)
		}
	}
}
