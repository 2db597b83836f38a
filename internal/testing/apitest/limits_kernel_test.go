package apitest

import (
	"testing"

	"github.com/millrace-go/millrace"
)

// TestKernelLimits: at each limit of a kernel, and beyond, plans are built and compute the results
// of single ops, in every way to run.
func TestKernelLimits(t *testing.T) {
	for name, o := range map[string]millrace.Options{
		"interpreted": {Compile: millrace.CompileOff},
		"machine":     {Compile: millrace.CompileWait},
		"C":           {Compile: millrace.CompileC, Tier: millrace.TierCompiled},
	} {
		t.Run(name, func(t *testing.T) {
			o.Explore = millrace.ExploreWait
			d := open(t, o)
			unfused := open(t, millrace.Options{Fusion: millrace.FusionOff, Compile: millrace.CompileOff})
			if o.Tier == millrace.TierCompiled { // gcc takes seconds for large ones; 65 fills kernels with 16 reductions and with 64 operands
				KernelLimits(t, d, unfused, 0, 65)
				return
			}
			KernelLimits(t, d, unfused, 0, 17, 33, 64, 65, 193)
		})
	}
}
