package codegen

import (
	"encoding/binary"
	"fmt"

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
	if len(k.Reduces) == 0 && kept < len(dims) {
		return fmt.Errorf("dims are reduced by a kernel that reduces nothing")
	}
	r := &run{k: k, args: args, scalars: scalars, vals: make([]uint64, len(k.Body))}
	point := make([]int64, len(dims))
	r.each(point, dims, 0, kept, func() {
		r.folds = r.folds[:0]
		for _, red := range k.Reduces {
			r.folds = append(r.folds, ir.NewFold(red.Op, k.Body[red.Value].DT))
		}
		r.each(point, dims, kept, len(dims), func() { r.point(point) })
		clear(point[kept:])
		for i, red := range k.Reduces {
			r.write(red.Operand, point, r.folds[i].Result())
		}
	})
	return r.err
}

// run is one interpretation. The first fault sticks.
type run struct {
	k       *Kernel
	args    []HostArg
	scalars []uint64
	vals    []uint64 // one per instruction, of the point at hand
	folds   []*ir.Fold
	err     error
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

func (r *run) point(point []int64) {
	for i, in := range r.k.Body {
		switch in.Op {
		case ir.Load:
			r.vals[i] = r.read(int(in.Imm), point)
		case ir.IndexLo:
			r.vals[i] = uint64(uint32(Position(&r.args[in.Imm].Access, point)))
		case ir.IndexHi:
			r.vals[i] = uint64(Position(&r.args[in.Imm].Access, point)) >> 32
		case ir.Scalar:
			r.vals[i] = r.scalars[in.Imm]
		default:
			r.vals[i] = r.eval(in)
		}
	}
	for _, s := range r.k.Stores {
		r.write(s.Operand, point, r.vals[s.Value])
	}
	for i, red := range r.k.Reduces {
		r.folds[i].Add(r.vals[red.Value])
	}
}

func (r *run) eval(in ir.Instr) uint64 {
	var dts [4]ir.DType
	var vals [4]uint64
	n := instrArgs(in)
	for i, a := range in.Args[:n] {
		dts[i], vals[i] = r.k.Body[a].DT, r.vals[a]
	}
	info := in.Op.Info()
	if info.Prim {
		return ir.EvalPrim(in, dts[:n], vals[:n])
	}
	if info.Expand == nil {
		r.fail("%s: %w", in.Op, ir.ErrUnsupported)
		return 0
	}
	operands := dts[:n]
	if info.Indexed {
		operands = operands[2:]
	}
	return ir.EvalOp(in.Op, in.DT, operands, vals[:n])
}

// element is the memory of an operand's element at a point.
func (r *run) element(operand int, point []int64) []byte {
	a := &r.args[operand]
	size := int64(r.k.Operands[operand].DT.Size())
	p := Position(&a.Access, point)
	if p < 0 || p >= int64(len(a.Data))/size {
		r.fail("operand %d: element %d of %d at point %v", operand, p, int64(len(a.Data))/size, point)
		return make([]byte, size)
	}
	return a.Data[p*size : (p+1)*size]
}

func (r *run) read(operand int, point []int64) uint64 {
	b := r.element(operand, point)
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func (r *run) write(operand int, point []int64, bits uint64) {
	if !stores(&r.args[operand].Access, point) {
		return
	}
	b := r.element(operand, point)
	switch len(b) {
	case 1:
		b[0] = byte(bits)
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(bits))
	default:
		binary.LittleEndian.PutUint64(b, bits)
	}
}
