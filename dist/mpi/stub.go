//go:build !(linux && (amd64 || arm64))

package mpi

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/millrace-go/millrace/dist"
)

func open(context.Context) (dist.Driver, error) {
	return nil, fmt.Errorf("mpi: there is no way to call MPI on %s/%s; it needs linux on amd64 or arm64: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}
