package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// doubled returns a kernel whose phase doubles each loaded value, stores the result and folds it
// by several row ops.
func doubled(t *testing.T, dt ir.DType, d ir.Denormals, folds int) *codegen.Kernel {
	t.Helper()
	var b ir.Builder
	x := b.Emit(ir.Load, dt, 0)
	y := b.Emit(ir.Add, dt, 0, x, x)
	k := &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     b.Code, Stores: []codegen.Store{{Operand: 1, Value: y}}, Denormals: d,
	}
	if d == ir.FlushDenormals {
		k = codegen.Flushed(k)
	}
	k, err := codegen.Lower(k)
	if err != nil {
		t.Fatal(err)
	}
	for range folds {
		k.Reduces = append(k.Reduces, codegen.Reduce{Value: k.Stores[0].Value})
	}
	return k
}

// TestFoldingCode checks that code that folds its values also stores them, and gives the bits of
// the oracle's folds, for rows of every length up to a block and several folds at a time.
func TestFoldingCode(t *testing.T) {
	isa := jit.ISA()
	if isa == nil {
		t.Skip("no machine code here")
	}
	for _, d := range []ir.Denormals{ir.KeepDenormals, ir.FlushDenormals} {
		if d == ir.FlushDenormals && !jit.Flushes() {
			continue
		}
		for _, dt := range []ir.DType{ir.Int32, ir.Int64, ir.Uint32, ir.Uint64, ir.Float32, ir.Float64} {
			for _, ops := range [][]ir.Op{{ir.Sum}, {ir.Max}, {ir.Min, ir.Prod}, {ir.Sum, ir.Max, ir.Sum}} {
				t.Run(fmt.Sprint(d, dt, ops), func(t *testing.T) {
					p := &machinePhase{kernel: doubled(t, dt, d, len(ops)), isa: isa, mxcsr: jit.MXCSR(d)}
					p.v.Class = make([]codegen.AccessClass, 2)
					var list []rows.Op
					for _, row := range ops {
						for op, r := range fold.RowOps {
							if r == row {
								list = append(list, rows.Op{Fold: op, Class: ir.ClassReduce, DT: dt, Size: int64(dt.Size())})
							}
						}
					}
					code := p.compileFolding(list, false)
					if code == nil {
						t.Fatal("there is no code")
					}
					rng := rand.New(rand.NewPCG(uint64(dt), uint64(len(ops))))
					for _, n := range []int{1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 127, 128, 129, 200, 1000, ir.FoldBlock - 1, ir.FoldBlock} {
						compareFolding(t, rng, p, code, d, dt, ops, n)
					}
				})
			}
		}
	}
}

// TestExtremaOfZeros checks that the sign of a zero counts, and that NaN wins, at every position
// of a row.
func TestExtremaOfZeros(t *testing.T) {
	isa := jit.ISA()
	if isa == nil {
		t.Skip("no machine code here")
	}
	const n = 3 * ir.FoldLanes
	for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
		for op, row := range map[fold.Op]ir.Op{fold.Max: ir.Max, fold.Min: ir.Min} {
			p := &machinePhase{kernel: doubled(t, dt, ir.KeepDenormals, 1), isa: isa, mxcsr: jit.MXCSR(ir.KeepDenormals)}
			p.v.Class = make([]codegen.AccessClass, 2)
			code := p.compileFolding([]rows.Op{{Fold: op, Class: ir.ClassReduce, DT: dt, Size: int64(dt.Size())}}, false)
			if code == nil {
				t.Fatal("there is no code")
			}
			sign := float64(1) // of the values that lose
			if op == fold.Max {
				sign = -1
			}
			rare := []float64{0, math.Copysign(0, -1), math.NaN(), -math.NaN(), sign * math.Inf(1), sign * math.SmallestNonzeroFloat32}
			for _, common := range []float64{0, math.Copysign(0, -1), sign, sign * math.Inf(1)} {
				for _, other := range rare {
					for at := 0; at < n; at += 5 {
						values := make([]float64, n)
						for i := range values {
							values[i] = common
						}
						values[at], values[n-1-at/2] = other, rare[at%2]
						foldFloats(t, p, code, dt, row, values)
					}
				}
			}
		}
	}
}

// foldFloats compares the fold of a row of doubled values with the oracle's.
func foldFloats(t *testing.T, p *machinePhase, code *jit.Code, dt ir.DType, row ir.Op, values []float64) {
	t.Helper()
	size := dt.Size()
	in, out, result := make([]byte, len(values)*size), make([]byte, len(values)*size), make([]byte, 8)
	want := ir.KeepDenormals.NewFold(row, dt)
	for i, x := range values {
		bits, twice := math.Float64bits(x), math.Float64bits(2*x)
		if dt == ir.Float32 {
			bits, twice = uint64(math.Float32bits(float32(x))), uint64(math.Float32bits(2*float32(x)))
		}
		operands.SetElement(unsafe.Pointer(&in[i*size]), int32(size), bits)
		want.Add([]uint64{twice})
	}
	var f jit.Frame
	f.Operand(0, unsafe.Pointer(&in[0]), int64(size), 0)
	f.Operand(1, unsafe.Pointer(&out[0]), int64(size), 0)
	f.Operand(2, unsafe.Pointer(&result[0]), 0, 0)
	f.Run(code, int64(len(values)), 1, p.mxcsr)
	var bits [8]byte
	operands.SetElement(unsafe.Pointer(&bits), int32(size), want.Result())
	if err := kernels.Same(dt, result[:size], bits[:size]); err != nil {
		t.Fatalf("%v of %v: %v", row, values, err)
	}
}

func compareFolding(t *testing.T, rng *rand.Rand, p *machinePhase, code *jit.Code, d ir.Denormals, dt ir.DType, ops []ir.Op, n int) {
	t.Helper()
	const rows = 3
	size := dt.Size()
	in, out := make([]byte, rows*n*size), make([]byte, rows*n*size)
	for i := range rows * n {
		operands.SetElement(unsafe.Pointer(&in[i*size]), int32(size), kernels.Value(rng, dt))
	}
	frame := make([]uint64, code.Func.Bytes/8+8)
	base := unsafe.Pointer(&frame[0])
	base = unsafe.Add(base, -uintptr(base)&63)
	*jit.Word(base, native.FramePoints), *jit.Word(base, native.FrameRows) = int64(n), rows
	results := make([][]byte, len(ops))
	operand := func(i int, at []byte, step, row int) {
		o := native.FrameArgs + i*native.OperandBytes
		*jit.Word(base, o+native.Address), *jit.Word(base, o+native.Step) = int64(uintptr(unsafe.Pointer(&at[0]))), int64(step)
		*jit.Word(base, o+native.RowStep) = int64(row)
	}
	operand(0, in, size, n*size)
	operand(1, out, size, n*size)
	for k := range ops {
		results[k] = make([]byte, rows*size)
		operand(2+k, results[k], 0, size)
	}
	code.Call(base, p.mxcsr)
	goruntime.KeepAlive([]any{in, out, results, frame})
	for r := range rows {
		values := make([]uint64, n)
		for i := range values {
			x := operands.Element(unsafe.Pointer(&in[(r*n+i)*size]), int32(size))
			values[i] = d.EvalPrim(ir.Instr{Op: ir.Add, DT: dt}, []ir.DType{dt, dt}, []uint64{x, x})
			var want [8]byte
			operands.SetElement(unsafe.Pointer(&want), int32(size), values[i])
			if err := kernels.Same(dt, out[(r*n+i)*size:(r*n+i+1)*size], want[:size]); err != nil {
				t.Fatalf("row %d of %d points, point %d: %v", r, n, i, err)
			}
		}
		for k, op := range ops {
			f := d.NewFold(op, dt)
			f.Add(values)
			var want [8]byte
			operands.SetElement(unsafe.Pointer(&want), int32(size), f.Result())
			if err := kernels.Same(dt, results[k][r*size:(r+1)*size], want[:size]); err != nil {
				t.Fatalf("row %d of %d points, %v: %v", r, n, op, err)
			}
		}
	}
}

// BenchmarkFoldingCode times folding code on rows of 2048 points in the first-level cache:
// nanoseconds for 16 points, minimum of all runs.
func BenchmarkFoldingCode(b *testing.B) {
	isa := jit.ISA()
	if isa == nil {
		b.Skip("no machine code here")
	}
	const points, most = 2048, 2
	for _, dt := range []ir.DType{ir.Float32, ir.Float64} {
		for op, row := range fold.RowOps {
			b.Run(fmt.Sprint(dt, row), func(b *testing.B) {
				var c ir.Builder
				x := c.Emit(ir.Load, dt, 0)
				k := &codegen.Kernel{Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}}, Body: c.Code, Reduces: []codegen.Reduce{{Value: x}}}
				p := &machinePhase{kernel: k, isa: isa, mxcsr: jit.MXCSR(0), v: native.Variant{Class: make([]codegen.AccessClass, 1)}}
				code := p.compileFolding([]rows.Op{{Fold: op, Class: ir.ClassReduce, DT: dt, Size: int64(dt.Size())}}, false)
				if code == nil {
					b.Fatal("there is no code")
				}
				in, results := make([]byte, points*most*dt.Size()), make([]byte, 64)
				var f jit.Frame
				least := time.Duration(math.MaxInt64)
				for b.Loop() {
					begin := time.Now()
					for range 64 {
						f.Operand(0, unsafe.Pointer(&in[0]), int64(dt.Size()), int64(points*dt.Size()))
						f.Operand(1, unsafe.Pointer(&results[0]), 0, 8)
						f.Run(code, points, most, p.mxcsr)
					}
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(float64(least.Nanoseconds())/(64*points*most/16), "ns-least/16")
			})
		}
	}
}
