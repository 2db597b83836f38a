//go:build !(cgo && linux && !android && !noopengl)

package opengl

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/runtime"
)

// TestStub: a build without cgo says what is missing.
func TestStub(t *testing.T) {
	d, err := runtime.Lookup("opengl")
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(runtime.Config{})
	_, perr := d.Probe()
	for _, e := range []error{err, perr} {
		if !errors.Is(e, runtime.ErrNoDriver) || !strings.Contains(e.Error(), "cgo") {
			t.Errorf("%v", e)
		}
	}
}
