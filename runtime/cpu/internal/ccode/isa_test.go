//go:build cgo && unix

package ccode

import (
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/machine"
)

// TestNativeISA checks that kernels are compiled for the widest vectors that this processor has.
func TestNativeISA(t *testing.T) {
	best := 0
	for isa, wide := range map[machine.ISA]*cgo.ISA{machine.AVX2: cgo.AVX2, machine.AVX512: cgo.AVX512} {
		if machine.Level().Has(isa) {
			best = max(best, wide.Bytes)
		}
	}
	if isa := ISA(); best > 0 && isa.Bytes != best {
		t.Errorf("kernels are compiled for %s with vectors of %d bytes, this processor has %d", isa.Name, isa.Bytes, best)
	}
}
