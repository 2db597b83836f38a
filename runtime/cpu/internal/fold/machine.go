package fold

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
)

// machineFold joins two elements by machine code: many lanes at once, or the elements of a row
// into the lanes of a block. If the system refuses memory for code, its functions are nil and Go
// does the work.
type machineFold struct {
	rows  *jit.Code        // to[i] = to[i] join from[i], in rows
	apart *jit.Code        // as rows, if the rows of from are not adjacent; nil: use rows
	lanes *jit.Code        // see native.CompileFold
	words *machineFold     // for booleans, of which eight are joined as one number
	joins *rowJoins        // for columns in memory, or nil
	whole func() *jit.Code // for rows in memory, see native.CompileRowFold; or nil
	mxcsr uint32
}

func newMachineFold(op ir.Op, dt ir.DType, d ir.Denormals) *machineFold {
	isa := jit.ISA()
	if isa == nil {
		return nil
	}
	k, err := joinKernel(op, dt, d)
	if err != nil {
		return nil
	}
	f := &machineFold{mxcsr: jit.MXCSR(d)}
	if f.rows = joinCode(native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, 3)}, isa, false)); f.rows == nil {
		return nil
	}
	form, err := memoryFold(op, dt, d, isa)
	if err != nil {
		return nil
	}
	if dt.Size() >= 4 {
		f.apart = joinCode(native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, 3), Ahead: 1 << 1}, isa, false))
		f.lanes = joinCode(native.CompileFold(form.Join, form.Image, form.Element, isa))
	}
	if form.Join != nil {
		f.joins = newRowJoins(form, int64(dt.Size()), isa, f.mxcsr)
		f.whole = sync.OnceValue(func() *jit.Code { return joinCode(native.CompileRowFold(form, isa)) })
	}
	if dt == ir.Bool {
		f.words = newMachineFold(op, ir.Uint64, d)
	}
	return f
}

// imageText maps a float to an integer with the same order, where every NaN is the greatest or the
// least value. elementText is the inverse.
const imageText = `in 0 : $f
out 1 : $i
%0 = load 0 : $f
%1 = bitcast %0 : $i
%2 = const $last : $i
%3 = shrraw %1 %2 : $i
%4 = const $most : $i
%5 = and %3 %4 : $i
%6 = xor %1 %5 : $i
%7 = ne %0 %0 : bool
%8 = const $nan : $i
%9 = where %7 %8 %6 : $i
store 1 %9
`

const elementText = `in 0 : $i
out 1 : $f
%0 = load 0 : $i
%1 = const $last : $i
%2 = shrraw %0 %1 : $i
%3 = const $most : $i
%4 = and %2 %3 : $i
%5 = xor %0 %4 : $i
%6 = bitcast %5 : $f
store 1 %6
`

// nativeFold returns a join of elements of a dtype for the machine code generator. Maximum and
// minimum of floats are joined as integers, unless denormals are flushed.
func nativeFold(op ir.Op, dt ir.DType, d ir.Denormals) (f native.Fold, err error) {
	if op != ir.Maximum && op != ir.Minimum || !dt.IsFloat() || d == ir.FlushDenormals {
		f.Join, err = joinKernel(op, dt, d)
		return f, err
	}
	i, nan := ir.Int32, int64(math.MaxInt32)
	if dt == ir.Float64 {
		i, nan = ir.Int64, math.MaxInt64
	}
	most := nan
	if op == ir.Minimum {
		nan = -nan - 1
	}
	words := strings.NewReplacer("$f", dt.String(), "$i", i.String(), "$last", strconv.Itoa(dt.Bits()-1), "$most", strconv.FormatInt(most, 10), "$nan", strconv.FormatInt(nan, 10))
	if f.Image, err = codegen.Parse(words.Replace(imageText)); err != nil {
		return f, err
	}
	if f.Element, err = codegen.Parse(words.Replace(elementText)); err != nil {
		return f, err
	}
	f.Extremum = op
	f.Join, err = joinKernel(op, i, d)
	return f, err
}

// Native returns a fold for code that folds the values that it computes. The lanes of columns
// are joined without images.
func Native(op Op, dt ir.DType, d ir.Denormals, columns bool) (f native.Fold, err error) {
	row := RowOps[op]
	if join := row.Info().Combine; columns {
		f.Join, err = joinKernel(join, dt, d)
	} else {
		f, err = nativeFold(join, dt, d)
	}
	if err != nil {
		return f, err
	}
	if f.Start = ir.FoldStart(row, dt); f.Image != nil {
		f.Start = imageOf(f.Start, dt)
	}
	return f, nil
}

// imageOf maps a float that is no NaN to an integer with the same order: see imageText.
func imageOf(bits uint64, dt ir.DType) uint64 {
	if dt == ir.Float64 {
		return bits ^ uint64(int64(bits)>>63)&(1<<63-1)
	}
	x := uint32(bits)
	return uint64(x ^ uint32(int32(x)>>31)&(1<<31-1))
}

func joinCode(f *native.Func, err error) *jit.Code {
	if err != nil || !jit.Fits(f) {
		jit.Refused.Add(1)
		return nil
	}
	return jit.MapOptional(f, "join")
}

// memoryFold returns the join of elements in the form in which they are stored; it has no Join if
// the ISA cannot join such bytes.
func memoryFold(op ir.Op, dt ir.DType, d ir.Denormals, isa *native.ISA) (native.Fold, error) {
	switch {
	case dt.Size() >= 4:
		return nativeFold(op, dt, d)
	case isa.JoinsBytes(op):
		return native.Fold{Join: plainJoin(op, dt)}, nil
	}
	return native.Fold{}, nil
}

// joinKernel returns a kernel that joins operand 1 to operand 0.
func joinKernel(op ir.Op, dt ir.DType, d ir.Denormals) (*codegen.Kernel, error) {
	k := plainJoin(op, dt)
	if d == ir.FlushDenormals {
		k = codegen.Flushed(k)
	} else if isa := jit.ISA(); dt.IsFloat() && !dt.Storage() && isa != nil && isa.Spells(op) {
		return k, nil
	}
	return codegen.Lower(k)
}

// plainJoin is joinKernel before lowering.
func plainJoin(op ir.Op, dt ir.DType) *codegen.Kernel {
	var b ir.Builder
	x, y := b.Emit(ir.Load, dt, 0), b.Emit(ir.Load, dt, 1)
	z := b.Emit(op, dt, 0, x, y)
	return &codegen.Kernel{
		Operands: []codegen.Operand{{Kind: codegen.Input, DT: dt}, {Kind: codegen.Input, DT: dt}, {Kind: codegen.Output, DT: dt}},
		Body:     b.Code, Stores: []codegen.Store{{Operand: 2, Value: z}},
	}
}

// joinBytes bounds the bytes that one call of a fold processes: about 100 µs of work.
const joinBytes = 256 << 10

// aheadRows is how many rows ahead rows of matrices are prefetched: they are read in short pieces,
// which no hardware prefetcher predicts.
const (
	aheadRows  = 8
	aheadPiece = 8 << 10 // longer pieces the hardware does predict
)

// into joins rows of n elements: each row of from to the same row of to.
func (f *machineFold) into(to, from unsafe.Pointer, size, n, rows, toStep, fromStep int64) {
	var frame jit.Frame
	code := f.rows
	if f.apart != nil && fromStep != n*size && n*size <= aheadPiece {
		code = f.apart
	}
	for rows > 0 {
		points, some := n, rows
		if n*size > joinBytes { // longer than a call: a part of one row
			points, some = joinBytes/size, 1
		} else {
			some = min(rows, max(joinBytes/max(n*size, 1), 1))
		}
		for at := int64(0); at < n; at += points {
			frame.Operand(0, unsafe.Add(to, at*size), size, toStep)
			frame.Operand(1, unsafe.Add(from, at*size), size, fromStep)
			frame.Operand(2, unsafe.Add(to, at*size), size, toStep)
			if code == f.apart {
				*jit.Word(unsafe.Pointer(&frame), native.FrameArgs+native.OperandBytes+native.Ahead) = aheadRows * fromStep
			}
			frame.Run(code, min(points, n-at), some, f.mxcsr)
		}
		if rows -= some; rows > 0 { // Go allows no pointer past the last row
			to, from = unsafe.Add(to, some*toStep), unsafe.Add(from, some*fromStep)
		}
	}
}

// groups joins whole groups of neighbouring elements to the lanes.
func (f *machineFold) groups(acc, values unsafe.Pointer, size, groups int64) {
	if f.lanes == nil || f.words != nil { // treat the groups as rows that are joined to one row
		onto := (*jit.Code)(nil)
		if f.joins != nil && groups > 0 {
			onto = f.joins.onto()
		}
		switch {
		case groups <= 0:
		case onto != nil:
			var frame jit.Frame
			f.joins.run(&frame, onto, acc, rowsToJoin{values, ir.FoldLanes * size, lineAhead}, ir.FoldLanes, groups)
		case f.words != nil:
			f.words.into(acc, values, 8, ir.FoldLanes/8, groups, 0, ir.FoldLanes)
		default:
			f.into(acc, values, size, ir.FoldLanes, groups, 0, ir.FoldLanes*size)
		}
		return
	}
	var frame jit.Frame
	for groups > 0 {
		some := min(groups, joinBytes/(ir.FoldLanes*size))
		frame.Operand(0, acc, size, 0)
		frame.Operand(1, values, size, ir.FoldLanes*size)
		frame.Run(f.lanes, ir.FoldLanes, some, f.mxcsr)
		if groups -= some; groups > 0 {
			values = unsafe.Add(values, some*ir.FoldLanes*size)
		}
	}
}

// foldRows folds rows of whole groups of neighbours to one element each.
func (f *machineFold) foldRows(out unsafe.Pointer, outStep int64, values unsafe.Pointer, step, m, n, size int64) bool {
	if f.whole == nil || f.whole() == nil {
		return false
	}
	var frame jit.Frame
	for most := max(joinBytes/(m*size), 1); n > 0; {
		some := min(n, most)
		frame.Operand(0, out, 0, outStep)
		frame.Operand(1, values, 0, step)
		frame.Run(f.whole(), m, some, f.mxcsr)
		if n -= some; n > 0 {
			out, values = unsafe.Add(out, some*outStep), unsafe.Add(values, some*step)
		}
	}
	return true
}

// machineFolds are the folds of devices with machine code, by their handling of denormals: Go's
// folds with loops over many elements replaced by machine code.
var machineFolds = [...]func() *Table{
	ir.KeepDenormals:  sync.OnceValue(func() *Table { return newMachineTable(ir.KeepDenormals) }),
	ir.FlushDenormals: sync.OnceValue(func() *Table { return newMachineTable(ir.FlushDenormals) }),
}

func newMachineTable(d ir.Denormals) *Table {
	t := newTable(d == ir.FlushDenormals)
	codes := map[scanKey]func() *machineFold{}
	for op, row := range RowOps {
		for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
			if dt == ir.Bool && (op == Sum || op == Prod) || t.folders[op][dt].Add == nil {
				continue
			}
			join := row.Info().Combine
			if dt == ir.Bool {
				join = map[Op]ir.Op{Max: ir.Or, Min: ir.And}[op]
			}
			code := sync.OnceValue(func() *machineFold { return newMachineFold(join, dt, d) })
			codes[scanKey{op, dt}] = code
			t.folders[op][dt] = joinedByMachine(t.folders[op][dt], int64(dt.Size()), code)
		}
	}
	scansByMachine(t, d, codes)
	argsByMachine(t)
	joinMemory(t, d)
	return t
}

// leastJoined is the number of elements from which a call pays.
const leastJoined = 64

// joinedByMachine replaces the loops of a folder by machine code.
func joinedByMachine(f Folder, size int64, code func() *machineFold) Folder {
	in := f
	f.Add = func(acc, values unsafe.Pointer, r, m, n, ld int64) {
		c := code()
		switch {
		case c == nil:
			in.Add(acc, values, r, m, n, ld)
		case n > 1:
			addColumns(&in, c, acc, values, size, r, m, n, ld)
		default:
			addRow(&in, c, acc, values, size, r, m, ld)
		}
	}
	f.Finish = func(acc unsafe.Pointer, elems, n int64) {
		c := code()
		if c == nil || n < 2 {
			in.Finish(acc, elems, n)
			return
		}
		used := min(elems, ir.FoldLanes)
		for w := int64(ir.FoldLanes / 2); w > 0 && used > 1; w /= 2 {
			if used > w {
				c.into(acc, unsafe.Add(acc, w*n*size), size, (used-w)*n, 1, 0, 0)
				used = w
			}
		}
	}
	f.Columns = func(out, acc, values unsafe.Pointer, m, n, ld int64) bool {
		c := code()
		return c != nil && c.joins != nil && c.joins.fold(out, acc, values, m, n, ld)
	}
	f.Rows = func(out unsafe.Pointer, outStep int64, values unsafe.Pointer, step, m, n int64) bool {
		c := code()
		return c != nil && c.foldRows(out, outStep, values, step, m, n, size)
	}
	f.Combine = func(total, block unsafe.Pointer, n int64) {
		if c := code(); c != nil && n >= leastJoined {
			c.into(total, block, size, n, 1, 0, 0)
			return
		}
		in.Combine(total, block, n)
	}
	return f
}

// addColumns adds elements of columns stored side by side, one lane of all columns at a time.
func addColumns(in *Folder, c *machineFold, acc, values unsafe.Pointer, size, r, m, n, ld int64) {
	for done, some := int64(0), int64(0); done < m; done += some {
		at := (r + done) % ir.FoldBlock
		some = min(m-done, ir.FoldLanes-at%ir.FoldLanes)
		from := unsafe.Add(values, done*ld*size)
		if at < ir.FoldLanes || n < 8 { // the first element of a lane replaces the lane's old value
			in.Add(acc, from, r+done, some, n, ld)
		} else {
			c.into(unsafe.Add(acc, at%ir.FoldLanes*n*size), from, size, n, some, n*size, ld*size)
		}
	}
}

// addRow adds elements of one row. Machine code adds whole groups of lanes if the elements are
// neighbours.
func addRow(in *Folder, c *machineFold, acc, values unsafe.Pointer, size, r, m, ld int64) {
	if ld != 1 {
		in.Add(acc, values, r, m, 1, ld)
		return
	}
	done := min(m, (ir.FoldLanes-r%ir.FoldLanes)%ir.FoldLanes)
	if done > 0 {
		in.Add(acc, values, r, done, 1, 1)
	}
	if groups := (m - done) / ir.FoldLanes; groups > 0 {
		c.groups(acc, unsafe.Add(values, done*size), size, groups)
		done += groups * ir.FoldLanes
	}
	if done < m {
		in.Add(acc, unsafe.Add(values, done*size), r+done, m-done, 1, 1)
	}
}
