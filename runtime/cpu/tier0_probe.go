package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// blockCaller calls one block function.
type blockCaller func(in *t0Instr, v []t0Val, groups int)

func goCall(in *t0Instr, v []t0Val, groups int) { goFns[in.fn-fnFirst](in, v, groups) }

// prepareTier0 does once what the first kernel needs: some 0.2 ms, beside
// what a program does before it runs one. The error says why the C block functions of
// this build are not used, where they are wanted; the device then runs, slower, in Go.
func prepareTier0(inC bool) error {
	fnIndex()
	if !inC {
		return nil
	}
	_, err := nativeLevel()
	return err
}

// buildTier0 makes the block program of a kernel, one that still holds ops of
// the table: most of them are one block function each.
func buildTier0(kernel *codegen.Kernel) (*tier0Code, error) {
	k, err := lowerForBlocks(kernel, false)
	if err != nil {
		return nil, err
	}
	return buildLowered(k, false, true)
}

// buildLowered is buildTier0 of a kernel that is lowered for it. One that flushes
// denormals in software is run in Go, and whatever the runtime in Go walks.
func buildLowered(k *codegen.Kernel, soft, inC bool) (*tier0Code, error) {
	t, err := compileBlocks(k)
	if err != nil {
		return nil, err
	}
	if soft {
		t.fns = softFns()
	} else if inC {
		err = t.translate()
	}
	return t, err
}

// blockProbe is an op on operands that are the same in all lanes.
type blockProbe struct {
	op   ir.Op
	dt   ir.DType
	want uint64 // by the oracle
	args []uint64
}

// blockProbes show by their results what flags for fast and wrong arithmetic would
// do to block functions: products contracted into sums, denormals flushed,
// divisions by reciprocals, NaN and signed zeros forgotten. The oracle would take
// most of the time of opening a device, so what it says is written down, and a
// test asks it.
var blockProbes = []blockProbe{
	{ir.Iota, ir.Float32, 0x3f002000, append([]uint64{4097, 0}, f32bits(-4096.5, 1.0000001)...)},
	{ir.Iota, ir.Float64, 0x3fe0000000002000, append([]uint64{4097, 0}, f64bits(-4096.5, 1.0000000000000002)...)},
	{ir.Mul, ir.Float32, 0x116c2, f32bits(1e-30, 1e-10)},
	{ir.Add, ir.Float32, 0x132a2, f32bits(1e-40, 1e-41)},
	{ir.Mul, ir.Float64, 0x7e8, f64bits(1e-300, 1e-20)},
	{ir.Div, ir.Float32, 0x3fd55555, f32bits(5, 3)},
	{ir.Sub, ir.Float32, 0, f32bits(0, 0)},
	{ir.Add, ir.Float32, 0, f32bits(float32(math.Copysign(0, -1)), 0)},
	{ir.Exp, ir.Float32, 0x40af2a94, f32bits(1.7)},
	{ir.Exp, ir.Float32, 0x1b, f32bits(-100)},
	{ir.Sin, ir.Float32, 0xbeb3325a, f32bits(1e6)},
	{ir.Log, ir.Float64, 0xbff34378fcbda721, f64bits(0.3)},
	{ir.FMA, ir.Float32, 0x34800000, f32bits(1.0000001, 1.0000001, -1)},
	{ir.FMA, ir.Float32, 0x3f801001, f32bits(1+0x1p-12, 1+0x1p-12, 0x1p-60)},
	{ir.FMA, ir.Float64, 0x3cc0000000000000, f64bits(1.0000000000000002, 1.0000000000000002, -1)},
	{ir.FMA, ir.Float64, 0x2, f64bits(0x1p-600, 0x1.8p-474, 0x1p-1074)},
	{ir.Maximum, ir.Float32, 0x7fc00000, f32bits(float32(math.NaN()), 1)},
	{ir.Maximum, ir.Float32, 0, f32bits(float32(math.Copysign(0, -1)), 0)},
	{ir.IsNaN, ir.Bool, 0x1, f32bits(float32(math.NaN()))},
}

func f32bits(x ...float32) (r []uint64) {
	for _, v := range x {
		r = append(r, uint64(math.Float32bits(v)))
	}
	return r
}

func f64bits(x ...float64) (r []uint64) {
	for _, v := range x {
		r = append(r, math.Float64bits(v))
	}
	return r
}

// in is the dtype of the operands.
func (p *blockProbe) in() ir.DType {
	if p.dt == ir.Bool {
		return ir.Float32
	}
	return p.dt
}

// argDTypes are those of the operands one by one.
func (p *blockProbe) argDTypes() []ir.DType {
	list := make([]ir.DType, 0, 4)
	for i := range p.args {
		d := p.in()
		if p.op.Info().Indexed && i < 2 {
			d = ir.Uint32
		}
		list = append(list, d)
	}
	return list
}

// probe calls block functions and compares what they give with what they should.
func probe(call blockCaller) error {
	for i := range blockProbes {
		if err := blockProbes[i].run(call); err != nil {
			return err
		}
	}
	return nil
}

// run compares one block function's result in all lanes.
func (p *blockProbe) run(call blockCaller) error {
	op, dt, args, argDT := p.op, p.dt, p.args, p.argDTypes()
	code := ir.Instr{Op: op, DT: dt}
	fn := blockFn(keyOf(code, argDT[0]))
	if fn == 0 {
		return fmt.Errorf("no block function of %v", op)
	}
	instr := t0Instr{fn: fn, dst: int32(len(args)), src: [4]int32{-1, -1, -1, -1}}
	var v []t0Val
	memory := make([]uint64, (len(args)+1)*groupLen)
	for i := range len(args) + 1 {
		d := dt
		at := unsafe.Pointer(&memory[i*groupLen])
		if i < len(args) {
			d = argDT[i]
			instr.src[i] = int32(i)
			e := evaluation{own: at, v: make([]t0Val, 1)}
			e.uniform(&t0Instr{size: int32(d.Size())}, args[i])
		}
		v = append(v, t0Val{at, d.Size() * groupLen})
	}
	call(&instr, v, 1)
	for i := range groupLen {
		got := element(unsafe.Add(v[len(args)].p, i*dt.Size()), int32(dt.Size()))
		if !sameBits(dt, got, p.want) {
			return fmt.Errorf("%v of %v%x gives %#x, not %#x", op, p.in(), args, got, p.want)
		}
	}
	return nil
}

// sameBits compares values; any NaN equals any NaN.
func sameBits(dt ir.DType, a, b uint64) bool {
	switch dt {
	case ir.Float32:
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		return a == b || x != x && y != y
	case ir.Float64:
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		return a == b || x != x && y != y
	}
	return a == b
}
