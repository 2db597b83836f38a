package jit

import (
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/codegen/native/arm64"
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
)

// Code is a function in executable memory.
type Code struct {
	Func  *native.Func
	mem   *machine.Code
	Entry uintptr
}

// isas are the targets of codegen/native, by the level of a processor.
var isas = map[machine.ISA]*native.ISA{machine.AVX2: amd64.AVX2, machine.AVX512: amd64.AVX512, machine.NEON: arm64.NEON}

// ISA returns the target of machine code, nil if there is none.
func ISA() *native.ISA { return isas[machine.Level()] }

// ISAOf returns the target for a level, nil if there is none.
func ISAOf(level machine.ISA) *native.ISA { return isas[level] }

// Map makes a function callable. name is shown by perf.
func Map(f *native.Func, name string) (Code, error) {
	code, err := machine.Map(f.Code)
	if err != nil {
		return Code{}, err
	}
	_ = machine.Name(code, 0, len(f.Code), "millrace "+name) // without a perf entry the code still runs
	c := Code{Func: f, mem: code, Entry: code.Addr(0)}
	f.Code = nil
	return c, nil
}

// Refused counts optional code, of all devices, that could not be made. Kernels run without it:
// slower, but with correct results.
var Refused atomic.Int64

// MapOptional is Map for optional code.
func MapOptional(f *native.Func, name string) *Code {
	c, err := Map(f, name)
	if err != nil {
		Refused.Add(1)
		return nil
	}
	return &c
}

// MXCSR returns the control word that treats denormals in this way.
func MXCSR(d ir.Denormals) uint32 {
	if d == ir.FlushDenormals {
		return machine.FlushMXCSR
	}
	return machine.KeepMXCSR
}

// Call runs the code on a frame.
func (c *Code) Call(frame unsafe.Pointer, mxcsr uint32) { machine.Call(c.Entry, frame, mxcsr) }

// Free frees the memory. The code must not run any more.
func (c *Code) Free() { c.mem.Free() }

// Word returns the address of a word of a frame.
func Word(frame unsafe.Pointer, at int) *int64 { return (*int64)(unsafe.Add(frame, at)) }
