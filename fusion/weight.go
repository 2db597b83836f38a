package fusion

import "github.com/millrace-go/millrace/ir"

// weights gives the number of lowered instructions of an op, before any are shared. It caches
// results.
type weights map[weightKey]int

type weightKey struct {
	op   ir.Op
	dt   ir.DType
	args [4]ir.DType
}

// of is the weight of an instruction whose operands are in code. Loads and scalars have weight 0:
// their cost is counted in bytes.
func (w weights) of(code []ir.Instr, in ir.Instr) int {
	switch in.Op {
	case ir.Load, ir.LoadAt, ir.Scalar, ir.Const:
		return 0
	}
	info := in.Op.Info()
	if info.RowOp {
		return rowWeights[info.Class]
	}
	if info.Prim && in.DT == in.DT.Compute() {
		return 1
	}
	key := weightKey{op: in.Op, dt: in.DT}
	n := 0
	for _, a := range in.Args {
		if a != ir.None {
			key.args[n] = code[a].DT
			n++
		}
	}
	if v, ok := w[key]; ok {
		return v
	}
	args := key.args[:n]
	if info.Indexed {
		args = args[2:] // the two halves of the position are no operands of the expansion
	}
	p := ir.Widen(in.Op, in.DT, args)
	if p == nil && !info.Prim {
		p = ir.Expansion(in.Op, in.DT, args)
	}
	v := 1
	if p != nil {
		v = max(1, len(p.Code)-len(p.Params))
	}
	w[key] = v
	return v
}

// rowWeights is the number of instructions that a row op costs per element of the row.
var rowWeights = map[ir.Class]int{ir.ClassReduce: 1, ir.ClassScan: 2, ir.ClassSort: 40, ir.ClassScatter: 2}
