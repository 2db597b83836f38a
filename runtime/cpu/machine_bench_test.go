package cpu

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// BenchmarkMachineCode measures the time from the lowered kernel of a GELU of 46 operations to
// callable code, and the part of it for mapping memory: medians.
func BenchmarkMachineCode(b *testing.B) {
	isa := jit.ISA()
	if isa == nil {
		b.Skip("no machine code here")
	}
	k, err := codegen.Lower(geluKernels()["custom"])
	if err != nil {
		b.Fatal(err)
	}
	v := native.Variant{Class: make([]codegen.AccessClass, len(k.Operands))}
	var compiling, mapping []float64
	for b.Loop() {
		start := time.Now()
		f, err := native.Compile(k, v, isa, false)
		if err != nil {
			b.Fatal(err)
		}
		compiled := time.Now()
		code, err := machine.Map(f.Code)
		if err != nil {
			b.Fatal(err)
		}
		compiling = append(compiling, float64(compiled.Sub(start).Microseconds()))
		mapping = append(mapping, float64(time.Since(compiled).Nanoseconds())/1e3)
		code.Free()
	}
	slices.Sort(compiling)
	slices.Sort(mapping)
	b.ReportMetric(compiling[len(compiling)/2], "µs-to-compile")
	b.ReportMetric(mapping[len(mapping)/2], "µs-to-map")
	b.ReportMetric(float64(len(k.Body)), "primitives")
}
