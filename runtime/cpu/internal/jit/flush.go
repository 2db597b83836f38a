package jit

import (
	"encoding/binary"
	"math"
	goruntime "runtime"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
)

// flushProbe computes values in which the rules of flushing differ.
const flushProbe = `denormals flush
in 0 : float32
in 1 : float32
in 2 : float64
out 3 : float32
out 4 : float32
out 5 : float32
out 6 : float32
%0 = load 0 : float32
%1 = load 1 : float32
%2 = load 2 : float64
%3 = mul %0 %1 : float32
%4 = add %0 %1 : float32
%5 = fdiv %0 %1 : float32
%6 = convert %2 : float32
store 3 %3
store 4 %4
store 5 %5
store 6 %6
`

// Flushes reports that machine code flushes denormals by the rule of ir.FlushDenormals.
// Processors for x86 do, and those for arm64 do with additional instructions; this function tests
// the processor or emulator that the process runs on.
var Flushes = sync.OnceValue(func() bool {
	k, err := codegen.Parse(flushProbe)
	if err != nil {
		panic(err) // the text is a constant
	}
	isa := ISA()
	if isa == nil {
		return false
	}
	f, err := native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, len(k.Operands))}, isa, false)
	if err != nil || !Fits(f) {
		return false
	}
	code, err := Map(f, "probe")
	if err != nil {
		return false
	}
	defer code.Free()
	x := []float32{0x1p-126, 0x1p-126, 0x1.ffffp-1, 0x1p-130, -0x1p-130, 2, 0x1p-126, 1}
	y := []float32{0.5, 0x1.fffffep-1, 0x1.00008p-126, 0x1p+127, -0x1p-130, -0x1p-130, 2, 3}
	d := []float64{0x1.ffffffp-127, 0x1.fffffep-127, 0x1p-127, 0x1p-126, -0x1p-149, 0x1p-1074, 1, 0x1p-140}
	host := make([]codegen.HostArg, len(k.Operands))
	for i, o := range k.Operands {
		host[i].Data = make([]byte, len(x)*o.DT.Size())
		host[i].Access.Stride[0] = 1
	}
	for i := range x {
		binary.LittleEndian.PutUint32(host[0].Data[4*i:], math.Float32bits(x[i]))
		binary.LittleEndian.PutUint32(host[1].Data[4*i:], math.Float32bits(y[i]))
		binary.LittleEndian.PutUint64(host[2].Data[8*i:], math.Float64bits(d[i]))
	}
	dims := []int64{int64(len(x))}
	if codegen.Interpret(k, dims, 1, host, nil) != nil {
		return false
	}
	var frame Frame
	got := make([][]byte, len(k.Operands))
	for i, o := range k.Operands {
		if got[i] = append([]byte(nil), host[i].Data...); o.Kind == codegen.Output {
			clear(got[i])
		}
		frame.Operand(i, unsafe.Pointer(unsafe.SliceData(got[i])), int64(o.DT.Size()), 0)
	}
	frame.Run(&code, dims[0], 1, MXCSR(k.Denormals))
	goruntime.KeepAlive(got)
	for i, o := range k.Operands {
		for e := range len(x) {
			at := e * o.DT.Size()
			if o.Kind == codegen.Output && !ir.SameValue(o.DT, uint64(binary.LittleEndian.Uint32(got[i][at:])), uint64(binary.LittleEndian.Uint32(host[i].Data[at:]))) {
				return false
			}
		}
	}
	return true
})
