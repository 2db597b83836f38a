//go:build cgo && unix

package cpu

import (
	goruntime "runtime"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/machine"
)

// runsCompiled reports that this build can run kernels compiled from C.
const runsCompiled = true

// hasLevel reports that the processor has an ISA level that the system and MILLRACE_LEVEL allow.
func hasLevel(level int) bool {
	switch levelISAs[level] {
	case cgo.AVX2:
		return machine.Level().Has(machine.AVX2)
	case cgo.AVX512:
		return machine.Level().Has(machine.AVX512)
	}
	return true
}

// nativeISA returns the ISA that kernels are compiled for here: the best available level.
func nativeISA() *cgo.ISA {
	switch goruntime.GOARCH {
	case "amd64":
		for level := len(levelISAs) - 1; level > 0; level-- {
			if hasLevel(level) {
				return levelISAs[level]
			}
		}
		return cgo.SSE
	case "arm64":
		return cgo.NEON
	}
	return cgo.Portable
}
