//go:build !linux && !darwin && !windows

package machine

// No executable pages on this system.
const (
	pages      = false
	allocateOp = "map"
	protectOp  = "protect"
)

func systemPage() int { return 4096 }

func allocate(int) ([]byte, error) { return nil, ErrUnsupported }

func protect([]byte) error { return ErrUnsupported }

func release([]byte) error { return ErrUnsupported }

func address([]byte) uintptr { return 0 }
