package interp

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/kernels"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// specials returns operands that ops treat specially.
func specials(dt ir.DType) []uint64 {
	var r []uint64
	switch dt {
	case ir.Bool:
		return []uint64{0, 1}
	case ir.Float32:
		for _, x := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 0.1, -0.7, 7.3, 88.7, -88.7, 89.5, -103.9, -104.5, 1e-3, 1e-20, 1e-39, -1e-45,
			1e10, -1e10, 3e38, 1e5, -3.2e5, 2.1474836e9, -2.1474836e9, 4.3e9, 9.3e18, 16777217, 255.5, 256, 0.9999999, 1.0000001, math.Pi, 1.5707964, 12, 64.25, math.Inf(1), math.Inf(-1), math.NaN()} {
			r = append(r, uint64(math.Float32bits(float32(x))))
		}
	case ir.Float64:
		for _, x := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 0.1, -0.7, 7.3, 709.5, -709.5, 710.5, -745, -746, 1e-3, 1e-100, 1e-310, -5e-324,
			1e10, -1e10, 1e300, 1e5, -3.2e5, 2147483648, -2147483649, 4.3e9, 9.3e18, -9.3e18, 1.9e19, 255.5, 0.9999999999999999, 1.0000000000000002, math.Pi, 12, 64.25, math.Inf(1), math.Inf(-1), math.NaN()} {
			r = append(r, math.Float64bits(x))
		}
	default:
		for _, x := range []int64{0, 1, 2, 3, 5, 7, 31, 32, 63, 64, 100, 127, 128, 255, 12345, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, -1, -2, -7, -100, 1 << 33, 1<<40 + 12345} {
			r = append(r, uint64(x)&(1<<(dt.Bits()-1)<<1-1))
		}
	}
	return r
}

// rowArgs returns the dtypes of the operands of a row's operation.
func rowArgs(r *operation, op ir.Op) []ir.DType {
	in := r.in
	if in == ir.Invalid {
		in = r.dt
	}
	switch op {
	case ir.Uniform, ir.Normal:
		return []ir.DType{ir.Uint64}
	case ir.Where:
		return []ir.DType{ir.Bool, in, in}
	case ir.Lookup:
		return []ir.DType{ir.Int32}
	}
	args := make([]ir.DType, op.Info().Arity)
	for i := range args {
		args[i] = in
	}
	return args
}

// lanes fills values with combinations of special operands.
func lanes(all []ir.DType, n int) [][]uint64 {
	sets := make([][]uint64, len(all))
	for i, dt := range all {
		sets[i] = specials(dt)
	}
	out := make([][]uint64, n)
	for l := range out {
		args := make([]uint64, len(all))
		x := l
		if len(all) > 2 {
			x = l * 7919
		}
		for i := range args {
			s := sets[i]
			args[i] = s[x%len(s)]
			x /= len(s)
			if x == 0 && len(all) > 2 {
				x = l * (104729 + i)
			}
		}
		out[l] = args
	}
	return out
}

// defined reports operands for which a primitive's result is defined.
func defined(op ir.Op, dt, in ir.DType, args []uint64) bool {
	signed := func(b uint64) int64 { return int64(b<<(64-dt.Bits())) >> (64 - dt.Bits()) }
	switch op {
	case ir.Quo, ir.Mod:
		return args[1] != 0 && (!dt.IsSigned() || !(signed(args[1]) == -1 && signed(args[0]) == math.MinInt64>>(64-dt.Bits())))
	case ir.ShlRaw, ir.ShrRaw:
		return args[1] < uint64(dt.Bits())
	case ir.Convert:
		if dt == ir.Bool {
			return in == ir.Bool
		}
		if !in.IsFloat() || dt.IsFloat() {
			return true
		}
		v := math.Float64frombits(args[0])
		if in == ir.Float32 {
			v = float64(math.Float32frombits(uint32(args[0])))
		}
		lo, hi := 0.0, math.Ldexp(1, dt.Bits())
		if dt.IsSigned() {
			lo, hi = -hi/2, hi/2
		}
		return v > lo-1 && v >= lo && v < hi
	}
	return true
}

func TestBlockFunctions(t *testing.T) {
	for i := range blocks {
		for _, r := range blocks[i].does {
			testBlock(t, i, &r)
		}
	}
}

func testBlock(t *testing.T, fn int, r *operation) {
	const n = 2048
	op, ok := ir.ParseOp(r.op)
	if !ok || op == ir.Rare {
		return
	}
	argDT := rowArgs(r, op)
	all := argDT
	if op.Info().Indexed {
		all = append([]ir.DType{ir.Uint32, ir.Uint32}, argDT...)
	}
	inputs := lanes(all, n)
	if op == ir.Lookup {
		for l := range inputs {
			inputs[l][0] = uint64(l % len(ir.TableByID(r.imm()).Bits))
		}
	}
	for l := range inputs {
		if !defined(op, r.dt, argDT[0], inputs[l]) {
			inputs[l] = inputs[0]
			if !defined(op, r.dt, argDT[0], inputs[l]) {
				inputs[l] = []uint64{0, 1}[:len(inputs[l])]
			}
		}
	}
	want := make([]uint64, n)
	for l := range want {
		if op.Info().Prim {
			want[l] = ir.EvalPrim(ir.Instr{Op: op, DT: r.dt, Imm: r.imm()}, argDT, inputs[l])
		} else {
			want[l] = ir.EvalOp(op, r.dt, argDT, inputs[l])
		}
	}
	if err := checkBlock(fn, r, all, inputs, want); err != nil {
		t.Errorf("%s of %v to %v: %v", r.op, r.in, r.dt, err)
	}
}

func checkBlock(fn int, r *operation, all []ir.DType, inputs [][]uint64, want []uint64) error {
	groups := len(inputs) / GroupLen
	in := instr{fn: fnFirst + int32(fn), dst: int32(len(all)), src: [4]int32{-1, -1, -1, -1}}
	memory := make([]uint64, (len(all)+1)*len(inputs))
	var v []value
	for i := range len(all) + 1 {
		p := unsafe.Pointer(&memory[i*len(inputs)])
		dt := r.dt
		if i < len(all) {
			dt, in.src[i] = all[i], int32(i)
			for l := range inputs {
				put(unsafe.Add(p, l*dt.Size()), dt.Size(), inputs[l][i])
			}
		}
		v = append(v, value{p, dt.Size() * GroupLen})
	}
	blockFns[fn](&in, v, groups)
	bad, first := 0, ""
	for l := range inputs {
		got := operands.Element(unsafe.Add(v[len(all)].p, l*r.dt.Size()), int32(r.dt.Size()))
		if !kernels.SameBits(r.dt, got, want[l]) {
			if bad++; bad == 1 {
				first = fmt.Sprintf("%#x gives %#x, not %#x", inputs[l], got, want[l])
			}
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d differ; %s", bad, len(inputs), first)
	}
	return nil
}

func put(p unsafe.Pointer, size int, bits uint64) {
	switch size {
	case 1:
		*(*uint8)(p) = uint8(bits)
	case 4:
		*(*uint32)(p) = uint32(bits)
	default:
		*(*uint64)(p) = bits
	}
}
