package cpu

import (
	"encoding/binary"
	"math"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
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

// machineFlushes reports that machine code flushes denormals by the rule of ir.FlushDenormals.
// Processors for x86 do, and those for arm64 do with additional instructions; this function tests
// the processor or emulator that the process runs on.
var machineFlushes = sync.OnceValue(func() bool {
	k, err := codegen.Parse(flushProbe)
	if err != nil {
		panic(err) // the text is a constant
	}
	isa := machineISA()
	if isa == nil {
		return false
	}
	class := make([]codegen.AccessClass, len(k.Operands))
	p, err := newMachinePhase(&cgo.Unit{Kernel: k, Variant: cgo.Variant{Class: class}}, len(class), isa, false)
	if err != nil {
		return false
	}
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
	a := args{rank: 1, dims: [runtime.MaxRank]int64{dims[0]}, scratch: make([]byte, p.scratch()+64)}
	got := make([][]byte, len(k.Operands))
	for i := range host {
		got[i] = append([]byte(nil), host[i].Data...)
		a.ops = append(a.ops, operand{base: unsafe.Pointer(unsafe.SliceData(got[i])), stride: host[i].Access.Stride})
	}
	for i, o := range k.Operands {
		if o.Kind == codegen.Output {
			clear(got[i])
		}
	}
	p.eval(&a, 0, dims[0])
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
