package gputest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// special values that are difficult for arithmetic. Denormals are left out: a GPU may flush them.
var special = map[ir.DType][]uint64{
	ir.Uint8: {0, 1, 2, 7, 8, 127, 128, 255},
	ir.Int32: {0, 1, 2, 0xffffffff, 0x7fffffff, 0x80000000, 31, 32, 33},
	ir.Bool:  {0, 1},
	ir.Float32: {0, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000,
		0x7f800000, 0xff800000, 0x7fc00000, 0x00800000, 0x7f7fffff,
		0x4b000000, 0x4f000000, 0xcf000000, 0x5f000000, 0x42b17218, 0xc2cff1b5,
		0x437f0000, 0x43800000, 0xc3000000},
	ir.Int8:   {0, 1, 2, 0xff, 0x7f, 0x80, 7, 8, 9},
	ir.Int16:  {0, 1, 2, 0xffff, 0x7fff, 0x8000, 15, 16, 17},
	ir.Uint16: {0, 1, 2, 0xffff, 0x7fff, 0x8000, 15, 16, 17},
	ir.Uint32: {0, 1, 2, 0xffffffff, 0x7fffffff, 0x80000000, 31, 32, 33},
	// Denormals of float16 are normal numbers of float32.
	ir.Float16:  {0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 1, 0x83ff, 0x0400, 0x7bff, 0x6400, 0x5bf8},
	ir.BFloat16: {0, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0x0080, 0x7f7f, 0x4f00, 0xcf00, 0x437f},
}

// opValues mixes special values with small and random ones.
func opValues(rng *rand.Rand, dt ir.DType, data []byte) {
	size := dt.Size()
	for i := 0; i+size <= len(data); i += size {
		var v uint64
		switch s := special[dt]; {
		case rng.IntN(6) == 0:
			v = s[rng.IntN(len(s))]
		case dt.IsFloat():
			f := rng.NormFloat64() * 4
			switch rng.IntN(6) {
			case 0:
				f *= 1e-4
			case 1:
				f *= 20
			case 2:
				f = float64(rng.IntN(33)-16) / 2
			}
			v = ir.FloatBits(dt, f)
		case dt == ir.Bool:
			v = rng.Uint64() & 1
		case size == 1:
			v = rng.Uint64()
		default:
			v = uint64(uint32(rng.IntN(41) - 20))
			if rng.IntN(4) == 0 {
				v = uint64(rng.Uint32())
			}
		}
		var bits [8]byte
		binary.LittleEndian.PutUint64(bits[:], v)
		copy(data[i:i+size], bits[:])
	}
}

// smallDivisors halves exponents of divisors above 2^126: their reciprocals are denormals, and a
// GPU may compute the quotient as zero.
func smallDivisors(dt ir.DType, data []byte) {
	size := dt.Size()
	for i := 0; i+size <= len(data) && dt.IsFloat(); i += size {
		var bits [8]byte
		copy(bits[:], data[i:i+size])
		y := ir.BitsFloat(dt, binary.LittleEndian.Uint64(bits[:]))
		if math.Abs(y) > 0x1p126 && !math.IsInf(y, 0) {
			binary.LittleEndian.PutUint64(bits[:], ir.FloatBits(dt, math.Sqrt(math.Abs(y))))
			copy(data[i:i+size], bits[:size])
		}
	}
}

// opKernel is out = op(inputs), or of scalars for creation ops.
func opKernel(op ir.Op, dt ir.DType, args []ir.DType) *codegen.Kernel {
	k := &codegen.Kernel{}
	none := [4]ir.Ref{ir.None, ir.None, ir.None, ir.None}
	call := ir.Instr{Op: op, DT: dt, Args: none}
	n := 0
	push := func(in ir.Instr) {
		k.Body = append(k.Body, in)
		call.Args[n] = ir.Ref(len(k.Body) - 1)
		n++
	}
	info := op.Info()
	if info.Indexed {
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Index})
		push(ir.Instr{Op: ir.IndexLo, DT: ir.Uint32, Args: none})
		push(ir.Instr{Op: ir.IndexHi, DT: ir.Uint32, Args: none})
	}
	for i, a := range args {
		if info.Class == ir.ClassCreate {
			k.Scalars = append(k.Scalars, a)
			push(ir.Instr{Op: ir.Scalar, DT: a, Imm: uint64(i), Args: none})
			continue
		}
		k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Input, DT: a})
		push(ir.Instr{Op: ir.Load, DT: a, Imm: uint64(len(k.Operands) - 1), Args: none})
	}
	k.Body = append(k.Body, call)
	k.Operands = append(k.Operands, codegen.Operand{Kind: codegen.Output, DT: dt})
	k.Stores = []codegen.Store{{Operand: len(k.Operands) - 1, Value: ir.Ref(len(k.Body) - 1)}}
	return k
}

type signature struct {
	dt   ir.DType
	args []ir.DType
}

// opSignatures lists a scalar op's dtypes that this device has.
func opSignatures(op ir.Op) (list []signature) {
	info := op.Info()
	for d := ir.Bool; d < ir.NumDTypes; d++ {
		if !info.In.Has(d) || !shader.DTypes.Has(d) {
			continue
		}
		args := make([]ir.DType, info.Arity)
		for i := range args {
			args[i] = d
		}
		dt := d
		switch {
		case op == ir.Uniform || op == ir.Normal:
			args[0] = ir.Uint64
		case op == ir.Where:
			args[0] = ir.Bool
		case op == ir.Cast:
			for to := ir.Bool; to < ir.NumDTypes; to++ {
				if shader.DTypes.Has(to) {
					list = append(list, signature{to, args})
				}
			}
			continue
		}
		if info.Out == ir.OutBool {
			dt = ir.Bool
		}
		list = append(list, signature{dt, args})
	}
	return list
}

// worthShader leaves out repetitions: ops on storage dtypes are other ops between conversions.
func worthShader(op ir.Op, s signature) bool {
	first := s.args[0]
	switch {
	case op == ir.Cast:
		return !s.dt.Storage() || !first.Storage()
	case op == ir.Where:
		first = s.dt
	}
	return !first.Storage() && !s.dt.Storage() || kernels.StorageOps(op, s.dt) || op == ir.Gelu || op == ir.Pow || op == ir.Normal
}

// testOps compares every scalar op of the table with the oracle, over vectors and over single
// points.
func testOps(t *testing.T) {
	if testing.Short() {
		t.Skip("some 300 shaders")
	}
	d := openDevice(t, runtime.Config{})
	for op := ir.Op(1); op < ir.NumOps; op++ {
		if c := op.Class(); c != ir.ClassElementwise && c != ir.ClassCreate {
			continue
		}
		for i, s := range opSignatures(op) {
			if !worthShader(op, s) {
				continue
			}
			sizes := []int64{1 << 14, 3}
			if i > 0 {
				sizes = sizes[:1] // every shader costs the adapter a compile
			}
			t.Run(fmt.Sprintf("%v/%v", op, append([]ir.DType{s.dt}, s.args...)), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(op), uint64(s.dt)))
				k := opKernel(op, s.dt, s.args)
				for _, n := range sizes {
					x := newTrial(k, 1, n)
					for i, o := range k.Operands {
						if o.Kind == codegen.Input {
							opValues(rng, o.DT, x.args[i].Data)
						}
						if i == 1 && (op == ir.Div || op == ir.FloorDiv) {
							smallDivisors(o.DT, x.args[i].Data)
						}
					}
					for _, dt := range k.Scalars {
						v := rng.Uint64()
						if dt.IsFloat() {
							v = ir.FloatBits(dt, rng.NormFloat64())
						} else if dt.Size() < 8 {
							v &= 1<<dt.Bits() - 1
						}
						if dt == ir.Bool {
							v &= 1
						}
						x.scalars = append(x.scalars, v)
					}
					tol := op.Info().Tol
					if op == ir.Iota && s.dt.IsFloat() { // product and sum may be rounded once, and cancel
						for _, v := range x.scalars {
							tol.Abs = max(tol.Abs, tol.In(s.dt).Rel*float64(n)*math.Abs(ir.BitsFloat(s.dt, v)))
						}
					}
					x.check(t, d, tol)
				}
			})
		}
	}
}
