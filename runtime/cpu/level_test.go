//go:build cgo && unix

package cpu

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/machine"
)

// TestLevels checks that printed code of a level uses only features that internal/machine requires
// for it, and that kernels are compiled for the best available level.
func TestLevels(t *testing.T) {
	asked := []string{"avx2", "fma"} // see machine.AVX2
	for level, isa := range levelISAs {
		if isa == cgo.AVX512 {
			asked = append(asked, "avx512f", "avx512bw", "avx512dq", "avx512vl")
		}
		for feature := range strings.SplitSeq(isa.Target, ",") {
			if feature != "" && !strings.HasPrefix(feature, "prefer-") && !slices.Contains(asked, feature) { // prefer- flags are advice, not features
				t.Errorf("%s code needs %s, which nobody asks for", levelNames[level], feature)
			}
		}
	}
	best := 0
	for level := range levelISAs {
		if hasLevel(level) {
			best = level
		}
	}
	if isa := nativeISA(); best > 0 && isa != levelISAs[best] || best == 0 && isa.Bytes != levelISAs[0].Bytes {
		t.Errorf("kernels are for %s, the best level is %s", isa.Name, levelNames[best])
	}
	for level, isa := range map[int]machine.ISA{1: machine.AVX2, 2: machine.AVX512} {
		if hasLevel(level) != machine.Level().Has(isa) {
			t.Errorf("%s: %v, where this processor has %v", levelNames[level], hasLevel(level), machine.Level())
		}
	}
}
