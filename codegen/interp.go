package codegen

import (
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// HostArg is an operand of Interpret: little-endian elements of the operand's dtype in Go's form (a
// bool is one byte), and the access by which points find them. Data is nil for index operands;
// Access.Buf is not used.
type HostArg struct {
	Data []byte
	runtime.Access
}

// Interpret runs a kernel over the points of dims. The first kept dims are kept, the others are
// reduced. It defines the result of a launch, and printers and devices are tested against it. Every
// op uses the oracle's arithmetic, whether the body was lowered or not.
func Interpret(k *Kernel, dims []int64, kept int, args []HostArg, scalars []uint64) error {
	return interpret(k, dims, kept, args, scalars, batchPoints)
}

// batchPoints is roughly the number of points computed at a time. It is large enough that the work
// per instruction takes little of the time, and small enough that values stay in a cache.
const batchPoints = 256

func interpret(k *Kernel, dims []int64, kept int, args []HostArg, scalars []uint64, batch int) error {
	if err := k.Verify(); err != nil {
		return err
	}
	if len(args) != len(k.Operands) || len(scalars) != len(k.Scalars) {
		return fmt.Errorf("%d operands and %d scalars were given, the kernel has %d and %d", len(args), len(scalars), len(k.Operands), len(k.Scalars))
	}
	if kept < 0 || kept > len(dims) || len(dims) > runtime.MaxRank {
		return fmt.Errorf("%d of %d dims kept", kept, len(dims))
	}
	if !k.HasRows() && kept < len(dims) {
		return fmt.Errorf("dims are reduced by a kernel that reduces nothing")
	}
	r := &run{k: k, args: args, scalars: scalars, dims: dims, kept: kept, level: k.Levels(), vals: make([][]uint64, len(k.Body)), scatters: k.Scatter()}
	r.width = 1
	for _, n := range dims[kept:] {
		r.width *= int(n)
	}
	atOnce := max(1, batch/max(1, r.width))
	if r.scatters != ir.None || r.sharesMemory() {
		atOnce = 1
	}
	if r.scatters != ir.None {
		r.dry = true // no index may be out of range when the first element is written
		r.all(atOnce)
		r.dry = false
	}
	for _, t := range k.Reduces {
		r.totals = append(r.totals, k.Denormals.NewFold(t.Op, k.Body[t.Value].DT))
	}
	r.all(atOnce)
	r.total()
	return r.err
}

// run is one interpretation. It keeps the first fault.
//
// Rows are computed in batches: an instruction is computed for all of a batch before the next
// instruction. If an output shares memory with an input, a batch is one row. Then the next row
// reads what this row stored, so a launch that must not work in place gives wrong numbers.
type run struct {
	k       *Kernel
	args    []HostArg
	scalars []uint64
	dims    []int64
	kept    int
	level   []Level
	width   int        // points of a row
	rows    int        // of the present batch
	firsts  []int64    // for each row one after another: its point at position 0 of the reduced dims
	points  []int64    // every point, row by row
	vals    [][]uint64 // by instruction: one value, or one per row or per point, as its level says
	err     error

	totals   []*ir.Fold
	scatters ir.Ref // the scatter of the body, if any
	dry      bool   // only checks indices
}

func (r *run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// sharesMemory reports that an output is in the memory of an input.
func (r *run) sharesMemory() bool {
	for i, out := range r.k.Operands {
		for j, in := range r.k.Operands {
			if out.Kind == Output && in.Kind == Input && alias(r.args[i].Data, r.args[j].Data) {
				return true
			}
		}
	}
	return false
}

// alias reports slices of the same memory: extended to their capacity, they end at the same place.
func alias(a, b []byte) bool {
	a, b = a[:cap(a)], b[:cap(b)]
	return len(a) > 0 && len(b) > 0 && &a[len(a)-1] == &b[len(b)-1]
}

// all runs the kernel for every row of dims, in batches of atOnce rows.
func (r *run) all(atOnce int) {
	at := make([]int64, len(r.dims))
	for more := !slices.Contains(r.dims[:r.kept], 0); more && r.err == nil; {
		r.rows, r.firsts, r.points = 0, r.firsts[:0], r.points[:0]
		for more && r.rows < atOnce {
			r.rows++
			r.firsts = append(r.firsts, at...)
			for range r.width {
				r.points = append(r.points, at...)
				next(at, r.dims, r.kept, len(r.dims))
			}
			more = next(at, r.dims, 0, r.kept)
		}
		r.batch()
	}
}

// next moves a point on by one along dims[from:to], in row-major order. After the last point it
// returns false, and the point is the first one again.
func next(point, dims []int64, from, to int) bool {
	for d := to - 1; d >= from; d-- {
		if point[d]++; point[d] < dims[d] {
			return true
		}
		point[d] = 0
	}
	return false
}

// batch computes the rows of the present batch, instruction by instruction, and stores the results.
// After a fault it repeats the rows one by one. Then the fault is that of the first row that has
// one, and the results of earlier rows are stored.
func (r *run) batch() {
	r.compute()
	if r.err != nil && r.rows > 1 {
		rows, rank, firsts, points := r.rows, len(r.dims), r.firsts, r.points
		r.rows, r.err = 1, nil
		for i := 0; i < rows && r.err == nil; i++ {
			r.firsts = firsts[i*rank : (i+1)*rank]
			r.points = points[i*r.width*rank : (i+1)*r.width*rank]
			r.batch()
		}
		return
	}
	if r.err == nil {
		r.store()
	}
}

func (r *run) compute() {
	for i, in := range r.k.Body {
		r.vals[i] = slices.Grow(r.vals[i][:0], r.count(r.level[i]))[:r.count(r.level[i])]
		switch {
		case r.err != nil:
			return
		case in.Op == ir.Scatter: // comes last
		case in.Op.Info().RowOp:
			r.rowOp(in, r.vals[i])
		default:
			r.values(in, r.level[i], r.vals[i])
		}
	}
}

func (r *run) store() {
	if r.scatters != ir.None {
		r.scatter(r.k.Body[r.scatters])
		return
	}
	for i, t := range r.k.Reduces {
		r.totals[i].Add(r.spread(t.Value, Point))
	}
	for row := range r.rows {
		for _, s := range r.k.Stores {
			level, from, n := Point, row*r.width, r.width
			if r.k.Operands[s.Operand].Row {
				level, from, n = Row, row, 1
			}
			for i := from; i < from+n; i++ {
				r.write(s.Operand, r.point(level, i), r.at(s.Value, level, i))
			}
		}
	}
}

// total stores the totals of all points.
func (r *run) total() {
	for i, t := range r.k.Reduces {
		if r.err == nil {
			r.put(t.Operand, make([]int64, len(r.dims)), 0, r.totals[i].Result())
		}
	}
}

// count is the number of values of a level in the batch.
func (r *run) count(l Level) int {
	return [...]int{Uniform: 1, Row: r.rows, Point: r.rows * r.width}[l]
}

// point is the point of value i of a level.
func (r *run) point(l Level, i int) []int64 {
	rank := len(r.dims)
	if l == Point {
		return r.points[i*rank : (i+1)*rank]
	}
	return r.firsts[i*rank : (i+1)*rank]
}

// at is the value of v for value i of level l, which must not be below the level of v.
func (r *run) at(v ir.Ref, l Level, i int) uint64 {
	switch have := r.level[v]; {
	case have == l:
		return r.vals[v][i]
	case have == Row:
		return r.vals[v][i/r.width]
	}
	return r.vals[v][0]
}

// spread returns one value of v for each value of a level.
func (r *run) spread(v ir.Ref, l Level) []uint64 {
	if r.level[v] == l {
		return r.vals[v]
	}
	out := make([]uint64, r.count(l))
	for i := range out {
		out[i] = r.at(v, l, i)
	}
	return out
}

// rowOp applies a row op to each row of its operands.
func (r *run) rowOp(in ir.Instr, out []uint64) {
	var all, row [2][]uint64
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		all[i] = r.spread(a, Point)
	}
	for j := range r.rows {
		for i := range all[:n] {
			row[i] = all[i][j*r.width : (j+1)*r.width]
		}
		results := r.k.Denormals.EvalRow(in.Op, in.Imm != 0, r.k.Body[in.Args[0]].DT, row[:n]...)
		copy(out[j*len(results):], results)
	}
}

// values computes one instruction for each value of its level.
func (r *run) values(in ir.Instr, l Level, out []uint64) {
	operand := slotOf(in)
	switch in.Op {
	case ir.Load:
		for i := range out {
			if out[i] = 0; in.Args[0] == ir.None || r.at(in.Args[0], l, i) != 0 {
				out[i] = r.read(operand, r.point(l, i), 0)
			}
		}
	case ir.LoadAt:
		for i := range out {
			out[i] = r.readAt(in, l, i)
		}
	case ir.IndexLo:
		for i := range out {
			out[i] = uint64(uint32(Position(&r.args[operand].Access, r.point(l, i))))
		}
	case ir.IndexHi:
		for i := range out {
			out[i] = uint64(Position(&r.args[operand].Access, r.point(l, i))) >> 32
		}
	case ir.Scalar:
		out[0] = r.scalars[in.Imm]
	default:
		r.eval(in, l, out)
	}
}

// readAt loads through an index, by the rules of its mode.
func (r *run) readAt(in ir.Instr, l Level, i int) uint64 {
	if in.Args[1] != ir.None && r.at(in.Args[1], l, i) == 0 {
		return 0
	}
	a := &r.args[slotOf(in)].Access
	at, ok := r.index(in, r.at(in.Args[0], l, i), int(a.IndexSize))
	if !ok {
		return 0
	}
	return r.read(slotOf(in), r.point(l, i), int64(at)*a.IndexStride)
}

// index resolves an index, the first operand of in, in an axis of size elements, by the rules of
// its mode.
func (r *run) index(in ir.Instr, bits uint64, size int) (int, bool) {
	i := int64(bits)
	if r.k.Body[in.Args[0]].DT == ir.Int32 {
		i = int64(int32(i))
	}
	at, ok := ir.ResolveIndex(ModeOf(in), i, size)
	if !ok && ModeOf(in) == ir.IndexError {
		r.fail("%w: index %d for %d elements", ir.ErrIndex, i, size)
	}
	return at, ok
}

func (r *run) eval(in ir.Instr, l Level, out []uint64) {
	var dts [4]ir.DType
	var rows [4][]uint64
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		dts[i], rows[i] = r.k.Body[a].DT, r.spread(a, l)
	}
	info := in.Op.Info()
	if ir.IsPrim(in.Op, in.DT, dts[0]) {
		r.k.Denormals.EvalPrims(in, dts[:n], rows[:n], out)
		return
	}
	if info.Expand == nil && ir.Widen(in.Op, in.DT, dts[:n]) == nil {
		r.fail("%s: %w", in.Op, ir.ErrUnsupported)
		return
	}
	operands := dts[:n]
	if info.Indexed {
		operands = operands[2:]
	}
	r.k.Denormals.EvalOps(in.Op, in.DT, operands, rows[:n], out)
}

// element is the memory of an operand's element at a point, moved by beyond elements.
func (r *run) element(operand int, point []int64, beyond int64) []byte {
	a := &r.args[operand]
	size := int64(r.k.Operands[operand].DT.Size())
	p := Position(&a.Access, point) + beyond
	if p < 0 || p >= int64(len(a.Data))/size {
		r.fail("operand %d: element %d of %d at point %v", operand, p, int64(len(a.Data))/size, point)
		return make([]byte, size)
	}
	return a.Data[p*size : (p+1)*size]
}

func (r *run) read(operand int, point []int64, beyond int64) uint64 {
	return ir.LoadBits(r.k.Operands[operand].DT, r.element(operand, point, beyond))
}

func (r *run) write(operand int, point []int64, bits uint64) {
	if stores(&r.args[operand].Access, point) {
		r.put(operand, point, 0, bits)
	}
}

func (r *run) put(operand int, point []int64, beyond int64, bits uint64) {
	ir.StoreBits(r.k.Operands[operand].DT, r.element(operand, point, beyond), bits)
}

// scatter combines a row's values with the elements that its indices name, in the order of the row.
// A kernel with a scatter runs row by row.
func (r *run) scatter(in ir.Instr) {
	from, to := slotOf(in), r.k.Stores[0].Operand
	x, out, first := &r.args[from], &r.args[to], r.point(Row, 0)
	if !r.dry && len(x.Data) > 0 && len(out.Data) > 0 && &x.Data[0] != &out.Data[0] {
		for i := range out.IndexSize {
			r.put(to, first, i*out.IndexStride, r.read(from, first, i*x.IndexStride))
		}
	}
	op := CombineOf(in).Op()
	for p := range r.width {
		at, ok := r.index(in, r.at(in.Args[0], Point, p), int(out.IndexSize))
		if !ok || r.dry {
			continue
		}
		beyond, bits := int64(at)*out.IndexStride, r.at(in.Args[1], Point, p)
		if op != ir.OpInvalid {
			bits = r.k.Denormals.Combine(op, in.DT, r.read(to, first, beyond), bits)
		}
		r.put(to, first, beyond, bits)
	}
}
