package nn

import "github.com/millrace-go/millrace"

// What the package needs of derivatives is here.

// watched is a handle of t's value that is followed.
func watched(t *millrace.Tensor) *millrace.Tensor { return t }

// detached is t's value, not followed.
func detached(t *millrace.Tensor) *millrace.Tensor { return t }
