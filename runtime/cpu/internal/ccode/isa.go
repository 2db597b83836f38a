package ccode

import (
	goruntime "runtime"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/internal/machine"
)

// ISA returns the ISA that kernels are compiled for here: the widest that the processor has and
// that the system and MILLRACE_LEVEL allow.
func ISA() *cgo.ISA {
	switch level := machine.Level(); {
	case level.Has(machine.AVX512):
		return cgo.AVX512
	case level.Has(machine.AVX2):
		return cgo.AVX2
	case goruntime.GOARCH == "amd64":
		return cgo.SSE
	case goruntime.GOARCH == "arm64":
		return cgo.NEON
	}
	return cgo.Portable
}

// Describe names the processor and what C is compiled for, if there is any.
func Describe() string {
	if !Supported {
		return goruntime.GOARCH + " without cgo"
	}
	return goruntime.GOARCH + " " + ISA().Name
}
