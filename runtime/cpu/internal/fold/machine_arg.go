package fold

import (
	"math"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// machineArg computes argmax or argmin by machine code. In a row, the code finds the greatest
// element of each lane, and Go searches for its position. In columns stored side by side, the code
// keeps images of the elements (signed integers in their order) and their positions. During that
// work an accumulator of n columns is n images and, from byte 8n on, n 32-bit numbers within the
// block; its last 8 bytes are the block's first number. Denormals keep their order, however
// arithmetic treats them.
type machineArg struct {
	fold    *machineFold
	columns *jit.Code // updates each column's image and place from a row
	size    int64     // bytes of an element
	image   int64     // bytes of an image
}

const (
	// leastArgRow is the least number of elements of a row for which calls pay.
	leastArgRow = 4 * ir.FoldLanes
	// leastArgColumns is the least number of columns for which calls pay.
	leastArgColumns = 8
)

func newMachineArg(dt ir.DType, least bool) *machineArg {
	isa := jit.ISA()
	if isa == nil {
		return nil
	}
	op := ir.Maximum
	if least {
		op = ir.Minimum
	}
	joined := dt
	if dt == ir.Bool {
		joined = ir.Uint8
	}
	a := &machineArg{size: int64(dt.Size()), image: max(4, int64(dt.Size()))}
	if a.fold = newMachineFold(op, joined, ir.KeepDenormals); a.fold == nil {
		return nil
	}
	k, err := argKernel(joined, least)
	if err != nil {
		jit.Refused.Add(1)
		return nil
	}
	v := native.Variant{Class: make([]codegen.AccessClass, len(k.Operands))}
	v.Class[argNumber] = codegen.Splat
	if a.columns = joinCode(native.Compile(k, v, isa, false)); a.columns == nil {
		return nil
	}
	return a
}

// The operands of an argKernel.
const (
	argBest = iota
	argValue
	argPlace
	argNumber // position of the row within its block
	argNewBest
	argNewPlace
	argOperands
)

// argKernel returns the kernel that updates the images and places of columns from a row.
func argKernel(dt ir.DType, least bool) (*codegen.Kernel, error) {
	i, top, all, most := ir.Int32, uint64(1)<<31, uint64(math.MaxUint32), uint64(math.MaxInt32)
	if dt.Size() == 8 {
		i, top, all, most = ir.Int64, 1<<63, math.MaxUint64, math.MaxInt64
	}
	var b ir.Builder
	constant := func(x uint64) ir.Ref { return b.Emit(ir.Const, i, x) }
	best, x, place := b.Emit(ir.Load, i, argBest), b.Emit(ir.Load, dt, argValue), b.Emit(ir.Load, ir.Int32, argPlace)
	var image ir.Ref
	switch {
	case dt.IsFloat():
		bits := b.Emit(ir.Bitcast, i, 0, x)
		sign := b.Emit(ir.ShrRaw, i, 0, bits, constant(uint64(dt.Bits()-1)))
		image = b.Emit(ir.Xor, i, 0, bits, b.Emit(ir.And, i, 0, sign, constant(most)))
	case dt.Size() < 4:
		image = b.Emit(ir.Convert, i, 0, x)
	case dt.IsSigned():
		image = x
	default:
		image = b.Emit(ir.Xor, i, 0, b.Emit(ir.Bitcast, i, 0, x), constant(top))
	}
	if least {
		image = b.Emit(ir.Xor, i, 0, image, constant(all))
	}
	if dt.IsFloat() {
		image = b.Emit(ir.Where, i, 0, b.Emit(ir.Ne, ir.Bool, 0, x, x), constant(most), image)
	}
	number := b.Emit(ir.Bitcast, ir.Int32, 0, b.Emit(ir.IndexLo, ir.Uint32, argNumber))
	greater := b.Emit(ir.Gt, ir.Bool, 0, image, best)
	newBest := b.Emit(ir.Where, i, 0, greater, image, best)
	newPlace := b.Emit(ir.Where, ir.Int32, 0, greater, number, place)
	return codegen.Lower(&codegen.Kernel{
		Operands: []codegen.Operand{
			argBest: {Kind: codegen.Input, DT: i}, argValue: {Kind: codegen.Input, DT: dt}, argPlace: {Kind: codegen.Input, DT: ir.Int32},
			argNumber: {Kind: codegen.Index}, argNewBest: {Kind: codegen.Output, DT: i}, argNewPlace: {Kind: codegen.Output, DT: ir.Int32},
		},
		Body: b.Code, Stores: []codegen.Store{{Operand: argNewBest, Value: newBest}, {Operand: argNewPlace, Value: newPlace}},
	})
}

// argByMachine replaces the loops of a folder by machine code.
func argByMachine[E rawBits, I int32 | int64](in Folder, dt ir.DType, least bool) Folder {
	code := sync.OnceValue(func() *machineArg { return newMachineArg(dt, least) })
	image := keyImageOf[E](dt, least)
	f := in
	f.Add = func(acc, values unsafe.Pointer, r, m, n, ld int64) {
		rows := n == 1 && ld == 1 && m >= leastArgRow
		if !rows && n < leastArgColumns {
			in.Add(acc, values, r, m, n, ld)
			return
		}
		c := code()
		switch {
		case c == nil:
			in.Add(acc, values, r, m, n, ld)
		case rows:
			lanes, n := c.lanes(acc, values, m)
			addArgLanes(&image, acc, memory.Elements[E](lanes, n), memory.Elements[E](values, m), r)
		default:
			if r%ir.FoldBlock == 0 {
				startArgs[I](acc, n, r)
			}
			c.add(acc, values, r%ir.FoldBlock, m, n, ld)
		}
	}
	f.Finish = func(acc unsafe.Pointer, elems, n int64) {
		if n >= leastArgColumns && code() != nil {
			finishArgs[I](acc, n)
		}
	}
	return f
}

// Lanes finds the greatest element of each lane of a row's whole groups, in the memory of an
// accumulator. For bytes, whose positions are found by their values, it finds only the greatest of
// all.
func (c *machineArg) lanes(acc, values unsafe.Pointer, m int64) (lanes unsafe.Pointer, n int64) {
	lanes = unsafe.Add(acc, 16*ir.FoldLanes-8*ir.FoldLanes)
	if c.size == 1 && c.fold.foldRows(lanes, 0, values, 0, m/ir.FoldLanes*ir.FoldLanes, 1, 1) {
		return lanes, 1
	}
	memory.Copy(lanes, values, ir.FoldLanes*c.size)
	values = unsafe.Add(values, ir.FoldLanes*c.size)
	c.fold.groups(lanes, values, c.size, m/ir.FoldLanes-1)
	return lanes, ir.FoldLanes
}

// Add adds m rows; number is the first one's number within its block.
func (c *machineArg) add(acc, values unsafe.Pointer, number, m, n, ld int64) {
	var frame jit.Frame
	places := unsafe.Add(acc, 8*n)
	most := max(joinBytes/(n*(2*c.image+8+c.size)), 1)
	for m > 0 {
		some := min(m, most)
		frame.Operand(argBest, acc, c.image, 0)
		frame.Operand(argNewBest, acc, c.image, 0)
		frame.Operand(argPlace, places, 4, 0)
		frame.Operand(argNewPlace, places, 4, 0)
		frame.Operand(argValue, values, c.size, ld*c.size)
		frame.Number(argNumber, number, 1)
		frame.Run(c.columns, n, some, c.fold.mxcsr)
		number += some
		if m -= some; m > 0 {
			values = unsafe.Add(values, some*ld*c.size)
		}
	}
}

// startArgs begins a block with images below every element.
func startArgs[I int32 | int64](acc unsafe.Pointer, n, first int64) {
	lowest := I(-1) << (8*unsafe.Sizeof(I(0)) - 1)
	images := memory.Elements[I](acc, n)
	for j := range images {
		images[j] = lowest
	}
	clear(memory.Elements[int32](unsafe.Add(acc, 8*n), n))
	*(*int64)(unsafe.Add(acc, 16*n-8)) = first
}

// finishArgs converts images and places into keys and positions.
func finishArgs[I int32 | int64](acc unsafe.Pointer, n int64) {
	first := *(*int64)(unsafe.Add(acc, 16*n-8))
	keys, places := argParts(acc, n)
	images, numbers := memory.Elements[I](acc, n), memory.Elements[int32](unsafe.Add(acc, 8*n), n)
	for j := n - 1; j >= 0; j-- { // backwards: the wider results overwrite what is behind
		keys[j], places[j] = uint64(images[j])^1<<63, first+int64(numbers[j])
	}
}

// argsByMachine replaces the arg folders of a table by machine code.
func argsByMachine(t *Table) {
	for op, least := range map[Op]bool{ArgMax: false, ArgMin: true} {
		t.folders[op][ir.Bool] = argByMachine[uint8, int32](t.folders[op][ir.Bool], ir.Bool, least)
		t.folders[op][ir.Uint8] = argByMachine[uint8, int32](t.folders[op][ir.Uint8], ir.Uint8, least)
		for _, dt := range []ir.DType{ir.Int32, ir.Uint32, ir.Float32} {
			t.folders[op][dt] = argByMachine[uint32, int32](t.folders[op][dt], dt, least)
		}
		for _, dt := range []ir.DType{ir.Int64, ir.Uint64, ir.Float64} {
			t.folders[op][dt] = argByMachine[uint64, int64](t.folders[op][dt], dt, least)
		}
	}
}
