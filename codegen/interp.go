package codegen

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// HostArg is an operand of Interpret: little-endian elements of the operand's
// dtype as Go programs hold them (a bool is one byte), and how points find
// them. Data is nil for index operands; Access.Buf is not used.
type HostArg struct {
	Data []byte
	runtime.Access
}

// Interpret runs a kernel over the points of dims, of which the first kept are
// kept and the rest reduced. It is the meaning of a launch that printers and
// devices are tested against: every op goes through the oracle's arithmetic
// one element at a time, whether the body was lowered or not.
func Interpret(k *Kernel, dims []int64, kept int, args []HostArg, scalars []uint64) error {
	if err := k.Verify(); err != nil {
		return err
	}
	if len(args) != len(k.Operands) || len(scalars) != len(k.Scalars) {
		return fmt.Errorf("%d operands and %d scalars for a kernel of %d and %d", len(args), len(scalars), len(k.Operands), len(k.Scalars))
	}
	if kept < 0 || kept > len(dims) || len(dims) > runtime.MaxRank {
		return fmt.Errorf("%d of %d dims kept", kept, len(dims))
	}
	if !k.HasRows() && kept < len(dims) {
		return fmt.Errorf("dims are reduced by a kernel that reduces nothing")
	}
	r := &run{k: k, args: args, scalars: scalars, level: k.Levels(), vals: make([][]uint64, len(k.Body)), scatters: k.Scatter()}
	if r.scatters != ir.None {
		r.dry = true // no index may be out of range when the first element is written
		r.rows(dims, kept)
		r.dry = false
	}
	r.rows(dims, kept)
	return r.err
}

// rows runs the kernel for every row of dims.
func (r *run) rows(dims []int64, kept int) {
	point := make([]int64, len(dims))
	r.each(point, dims, 0, kept, func() {
		r.points = r.points[:0]
		r.each(point, dims, kept, len(dims), func() { r.points = append(r.points, slices.Clone(point)) })
		clear(point[kept:])
		r.row(point)
	})
}

// run is one interpretation. The first fault sticks.
type run struct {
	k       *Kernel
	args    []HostArg
	scalars []uint64
	level   []Level
	points  [][]int64  // of the row at hand
	vals    [][]uint64 // per instruction: of every point of the row, or one where that is the same
	err     error

	scatters ir.Ref // the scatter of the body, if any
	dry      bool   // only looks at indices
}

func (r *run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// each calls f for every point of dims[from:to], row-major.
func (r *run) each(point, dims []int64, from, to int, f func()) {
	if r.err != nil {
		return
	}
	if from == to {
		f()
		return
	}
	for i := range dims[from] {
		point[from] = i
		r.each(point, dims, from+1, to, f)
	}
}

// row computes a row, instruction by instruction, and stores what it must.
// first is the row's point at position 0 of the reduced dims.
func (r *run) row(first []int64) {
	for i, in := range r.k.Body {
		r.vals[i] = r.vals[i][:0]
		switch {
		case r.err != nil:
			return
		case in.Op == ir.Scatter: // comes last
		case in.Op.Info().RowOp:
			r.vals[i] = append(r.vals[i], r.rowOp(in)...)
		case r.level[i] == Point:
			for p, point := range r.points {
				r.vals[i] = append(r.vals[i], r.value(in, p, point))
			}
		default:
			r.vals[i] = append(r.vals[i], r.value(in, 0, first))
		}
	}
	if r.scatters != ir.None {
		r.scatter(r.k.Body[r.scatters], first)
		return
	}
	for _, s := range r.k.Stores {
		if r.k.Operands[s.Operand].Row {
			r.write(s.Operand, first, r.at(s.Value, 0))
			continue
		}
		for p, point := range r.points {
			r.write(s.Operand, point, r.at(s.Value, p))
		}
	}
}

// at is a value at point p of the row.
func (r *run) at(v ir.Ref, p int) uint64 {
	if r.level[v] != Point {
		return r.vals[v][0]
	}
	return r.vals[v][p]
}

// rowOp applies a row op to the row of its operands.
func (r *run) rowOp(in ir.Instr) []uint64 {
	var rows [2][]uint64
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		rows[i] = make([]uint64, len(r.points))
		for p := range r.points {
			rows[i][p] = r.at(a, p)
		}
	}
	return ir.EvalRow(in.Op, in.Imm != 0, r.k.Body[in.Args[0]].DT, rows[:n]...)
}

// value computes one instruction at one point of the row.
func (r *run) value(in ir.Instr, p int, point []int64) uint64 {
	switch in.Op {
	case ir.Load:
		if in.Args[0] != ir.None && r.at(in.Args[0], p) == 0 {
			return 0
		}
		return r.read(int(in.Imm), point, 0)
	case ir.LoadAt:
		return r.readAt(in, p, point)
	case ir.IndexLo:
		return uint64(uint32(Position(&r.args[in.Imm].Access, point)))
	case ir.IndexHi:
		return uint64(Position(&r.args[in.Imm].Access, point)) >> 32
	case ir.Scalar:
		return r.scalars[in.Imm]
	}
	return r.eval(in, p)
}

// readAt loads through an index, as its mode says.
func (r *run) readAt(in ir.Instr, p int, point []int64) uint64 {
	if in.Args[1] != ir.None && r.at(in.Args[1], p) == 0 {
		return 0
	}
	a := &r.args[slotOf(in)].Access
	i := int64(r.at(in.Args[0], p))
	if r.k.Body[in.Args[0]].DT == ir.Int32 {
		i = int64(int32(i))
	}
	at, ok := ir.ResolveIndex(ModeOf(in), i, int(a.IndexSize))
	if !ok {
		if ModeOf(in) == ir.IndexError {
			r.fail("%w: index %d for %d elements", ir.ErrIndex, i, a.IndexSize)
		}
		return 0
	}
	return r.read(slotOf(in), point, int64(at)*a.IndexStride)
}

func (r *run) eval(in ir.Instr, p int) uint64 {
	var dts [4]ir.DType
	var vals [4]uint64
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		dts[i], vals[i] = r.k.Body[a].DT, r.at(a, p)
	}
	info := in.Op.Info()
	if ir.IsPrim(in.Op, in.DT, dts[0]) {
		return ir.EvalPrim(in, dts[:n], vals[:n])
	}
	if info.Expand == nil && ir.Widen(in.Op, in.DT, dts[:n]) == nil {
		r.fail("%s: %w", in.Op, ir.ErrUnsupported)
		return 0
	}
	operands := dts[:n]
	if info.Indexed {
		operands = operands[2:]
	}
	return ir.EvalOp(in.Op, in.DT, operands, vals[:n])
}

// element is the memory of an operand's element at a point, and beyond.
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
	b := r.element(operand, point, beyond)
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:])
}

func (r *run) write(operand int, point []int64, bits uint64) {
	if stores(&r.args[operand].Access, point) {
		r.put(operand, point, 0, bits)
	}
}

func (r *run) put(operand int, point []int64, beyond int64, bits uint64) {
	var wide [8]byte
	binary.LittleEndian.PutUint64(wide[:], bits)
	b := r.element(operand, point, beyond)
	copy(b, wide[:len(b)])
}

// scatter combines a row's values with the elements that its indices name, in
// the order of the row.
func (r *run) scatter(in ir.Instr, first []int64) {
	from, to := slotOf(in), r.k.Stores[0].Operand
	x, out := &r.args[from], &r.args[to]
	if !r.dry && len(x.Data) > 0 && &x.Data[0] != &out.Data[0] {
		for i := range out.IndexSize {
			r.put(to, first, i*out.IndexStride, r.read(from, first, i*x.IndexStride))
		}
	}
	op := CombineOf(in).Op()
	for p := range r.points {
		i := int64(r.at(in.Args[0], p))
		if r.k.Body[in.Args[0]].DT == ir.Int32 {
			i = int64(int32(i))
		}
		at, ok := ir.ResolveIndex(ModeOf(in), i, int(out.IndexSize))
		if !ok && ModeOf(in) == ir.IndexError {
			r.fail("%w: index %d for %d elements", ir.ErrIndex, i, out.IndexSize)
		}
		if !ok || r.dry {
			continue
		}
		beyond, bits := int64(at)*out.IndexStride, r.at(in.Args[1], p)
		if op != ir.OpInvalid {
			bits = ir.EvalOp(op, in.DT, []ir.DType{in.DT, in.DT}, []uint64{r.read(to, first, beyond), bits})
		}
		r.put(to, first, beyond, bits)
	}
}
