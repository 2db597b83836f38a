//go:build !linux

package machine

import (
	"errors"
	"fmt"
	"os"
)

func createPerfMap(string) (*os.File, error) {
	return nil, fmt.Errorf("a perf map: %w", errors.ErrUnsupported)
}
