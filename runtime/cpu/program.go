package cpu

import (
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel made ready: its tier-0 form, which always exists, and
// the compiled variants that have been made so far.
type program struct {
	dev     *device
	kernel  *codegen.Kernel // as fusion wrote it
	lowered *codegen.Kernel // primitives only
	tier0   *tier0Prog

	variants atomic.Pointer[[]*variant] // replaced, never edited; read without a lock
	mu       sync.Mutex                 // held to add a variant
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }
