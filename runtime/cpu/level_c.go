//go:build cgo && unix

package cpu

import (
	goruntime "runtime"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// nativeISA is what kernels are compiled for here: the best level that this
// processor, as the system lets it be used, has. Which it has is decided in
// tier0_levels.c for all C, so that kernels are never for more than the
// functions around them.
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
