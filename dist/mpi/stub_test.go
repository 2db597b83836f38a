//go:build !(linux && (amd64 || arm64))

package mpi

import (
	"context"
	"errors"
	"testing"
)

// TestStub: on systems where MPI cannot be called the driver is there and says so.
func TestStub(t *testing.T) {
	if d, err := open(context.Background()); d != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, %v", d, err)
	}
}
