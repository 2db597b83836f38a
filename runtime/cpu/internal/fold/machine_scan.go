package fold

import (
	"sync"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
)

// machineScan joins elements for a scan by machine code.
type machineScan struct {
	*machineFold
	behind *jit.Code // to[i] = off join to[i]
}

const (
	// leastScanned is the number of columns from which calls pay.
	leastScanned = 8
	// scanPiece is about the number of bytes that are scanned before they are joined to the blocks
	// before: they are then still in the first-level cache.
	scanPiece = 8 << 10
)

func newMachineScan(op ir.Op, dt ir.DType, d ir.Denormals, fold *machineFold) *machineScan {
	if fold == nil {
		return nil
	}
	k, err := joinKernel(op, dt, d)
	if err != nil {
		return nil
	}
	v := native.Variant{Class: make([]codegen.AccessClass, 3)}
	v.Class[0] = codegen.Splat
	s := &machineScan{machineFold: fold, behind: joinCode(native.Compile(k, v, jit.ISA(), false))}
	if s.behind == nil {
		return nil
	}
	return s
}

// scanByMachine replaces the loops of a folder's scan by machine code.
func scanByMachine[T computing](f *Folder, sc scans[T], code func() *machineScan) {
	goOffset, in := sc.offset, f.Scan
	sc.offset = func(to []T, off *T) {
		if c := code(); c != nil && len(to) >= leastJoined {
			c.offset(unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(off), f.Size, int64(len(to)))
			return
		}
		goOffset(to, off)
	}
	row := scanOf(sc, nil)
	f.Scan = func(out, values, run, offset unsafe.Pointer, r, m, n int64) {
		if n < leastScanned {
			if n == 1 {
				row(out, values, run, offset, r, m, n)
			} else {
				in(out, values, run, offset, r, m, n)
			}
			return
		}
		if c := code(); c != nil {
			c.columns(out, values, run, offset, f.Size, r, m, n)
		} else {
			in(out, values, run, offset, r, m, n)
		}
	}
}

// offset joins one value in front of n elements, at most a block.
func (c *machineScan) offset(to, off unsafe.Pointer, size, n int64) {
	var frame jit.Frame
	frame.Operand(0, off, 0, 0)
	frame.Operand(1, to, size, 0)
	frame.Operand(2, to, size, 0)
	frame.Run(c.behind, n, 1, c.mxcsr)
}

// columns scans m rows from number r on of n dense columns. Each row of a block is the row before
// joined by its own elements. Then all rows are joined to the result of the blocks before.
func (c *machineScan) columns(out, values, run, offset unsafe.Pointer, size, r, m, n int64) {
	var frame jit.Frame
	row := n * size
	most := max(scanPiece/row, 2)
	for at := int64(0); at < m; {
		i := r + at
		some := min(m-at, ir.ScanBlock-i%ir.ScanBlock, most)
		to, v := unsafe.Add(out, at*row), unsafe.Add(values, at*row)
		switch {
		case i%ir.ScanBlock > 0:
			c.join(&frame, to, run, v, size, n, 1)
		case i == ir.ScanBlock:
			memory.Copy(offset, run, row)
		case i > 0:
			c.into(offset, run, size, n, 1, 0, 0)
		}
		if i%ir.ScanBlock == 0 {
			memory.Copy(to, v, row)
		}
		if some > 1 {
			c.join(&frame, unsafe.Add(to, row), to, unsafe.Add(v, row), size, n, some-1)
		}
		memory.Copy(run, unsafe.Add(to, (some-1)*row), row)
		if i >= ir.ScanBlock {
			c.behindAll(&frame, to, offset, size, n, some)
		}
		at += some
	}
}

// join sets dense rows of to to rows of a joined by rows of b.
func (c *machineScan) join(frame *jit.Frame, to, a, b unsafe.Pointer, size, n, rows int64) {
	c.eachPart(size, n, func(at, points int64) {
		frame.Operand(0, unsafe.Add(a, at), size, n*size)
		frame.Operand(1, unsafe.Add(b, at), size, n*size)
		frame.Operand(2, unsafe.Add(to, at), size, n*size)
		frame.Run(c.rows, points, rows, c.mxcsr)
	})
}

// behindAll joins one row in front of several dense rows.
func (c *machineScan) behindAll(frame *jit.Frame, to, off unsafe.Pointer, size, n, rows int64) {
	c.eachPart(size, n, func(at, points int64) {
		frame.Operand(0, unsafe.Add(off, at), size, 0)
		frame.Operand(1, unsafe.Add(to, at), size, n*size)
		frame.Operand(2, unsafe.Add(to, at), size, n*size)
		frame.Run(c.rows, points, rows, c.mxcsr)
	})
}

// eachPart cuts rows that are too long for a call.
func (c *machineScan) eachPart(size, n int64, f func(at, points int64)) {
	const most = joinBytes / 16
	for at := int64(0); at < n; at += most {
		f(at*size, min(n-at, most))
	}
}

// scansByMachine runs the scans of a table by machine code. folds has the code of its folds.
func scansByMachine(t *Table, d ir.Denormals, folds map[scanKey]func() *machineFold) {
	scansOf(t, d, folds, ir.Uint8, plainScans[uint8])
	scansOf(t, d, folds, ir.Int32, plainScans[int32])
	scansOf(t, d, folds, ir.Int64, plainScans[int64])
	scansOf(t, d, folds, ir.Uint32, plainScans[uint32])
	scansOf(t, d, folds, ir.Uint64, plainScans[uint64])
	if d == ir.FlushDenormals {
		scansOf(t, d, folds, ir.Float32, func(op ir.Op) scans[float32] { return scansBy(flushJoins32(op).one) })
		scansOf(t, d, folds, ir.Float64, func(op ir.Op) scans[float64] { return scansBy(flushJoins64(op).one) })
		return
	}
	scansOf(t, d, folds, ir.Float32, plainScans[float32])
	scansOf(t, d, folds, ir.Float64, plainScans[float64])
}

// scanKey identifies a fold.
type scanKey struct {
	op Op
	dt ir.DType
}

func scansOf[T computing](t *Table, d ir.Denormals, folds map[scanKey]func() *machineFold, dt ir.DType, of func(ir.Op) scans[T]) {
	for op, row := range map[Op]ir.Op{Sum: ir.Sum, Prod: ir.Prod, Max: ir.Max, Min: ir.Min} {
		join, fold := row.Info().Combine, folds[scanKey{op, dt}]
		code := sync.OnceValue(func() *machineScan { return newMachineScan(join, dt, d, fold()) })
		scanByMachine(&t.folders[op][dt], of(join), code)
	}
}
