package codegen

import (
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Operations is the number of arithmetic operations of a launch of k, as rooflines count them: one
// for each op on an element, whether an addition or an exponential, and two for each product that a
// contraction adds. Copies and conversions count nothing.
//
// A function such as exp counts as one. To count the primitives that compute it, pass the result of
// Counted.
func Operations(k *Kernel, l *runtime.Launch) float64 {
	rows, points := 1.0, 1.0
	for d := range l.Rank {
		n := float64(l.Dims[d])
		points *= n
		if d < l.Kept {
			rows *= n
		}
	}
	sum := 0.0
	for i, level := range k.Levels() {
		in := &k.Body[i]
		switch n := operations(in); {
		case n == 0 || level == Uniform && !in.Op.Info().RowOp:
		case in.Op.Info().RowOp || level == Point:
			sum += n * points // a row op takes every point of its row
		default:
			sum += n * rows
		}
	}
	return sum + float64(len(k.Reduces))*points
}

// operations is the count of an instruction at one point.
func operations(in *ir.Instr) float64 {
	switch info := in.Op.Info(); {
	case in.Op == ir.Dot:
		return 2
	case info.Outside || in.Op == ir.Const || in.Op == ir.Cast || in.Op == ir.Bitcast || in.Op == ir.Reinterpret ||
		info.Class == ir.ClassMove || info.Class == ir.ClassGather:
		return 0
	}
	return 1
}

// Counted returns the kernel with its functions replaced by the primitives that compute them. Ops
// that Operations does not count stay as they are. It takes as long as a lowering.
func Counted(k *Kernel) (*Kernel, error) {
	return LowerFor(k, func(in ir.Instr, _ ir.DType) bool { return operations(&in) == 0 })
}

// shownOps is the largest number of ops in a kernel's name.
const shownOps = 4

// Name is a short name of the kernel, made of its ops: mul+add+tanh. It does not include operands,
// so different kernels may share it.
func (k *Kernel) Name() string {
	var ops []string
	for i := range k.Body {
		if operations(&k.Body[i]) > 0 {
			ops = append(ops, k.Body[i].Op.String())
		}
	}
	for i := range k.Reduces {
		ops = append(ops, k.Reduces[i].Op.String())
	}
	switch {
	case len(ops) == 0:
		return "copy"
	case len(ops) > shownOps:
		left := len(ops) - shownOps + 1
		ops = append(ops[:shownOps-1], strconv.Itoa(left)+" more")
	}
	return strings.Join(ops, "+")
}
