package rows

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
)

// Plan is a kernel's phases and their row ops.
type Plan struct {
	*codegen.Schedule
	Ops    [][]Op // by phase
	totals int
	most   int // row ops of one phase
}

// Op is a value of a phase that is folded, scanned or sorted into a temporary, or folded into a
// total.
type Op struct {
	Fold  fold.Op
	Class ir.Class
	DT    ir.DType  // of the values
	Size  int64     // bytes of one element of the result
	Load  int       // the operand whose elements are the values; below 0: they are computed
	temp  int       // the operand that takes the result
	sort  fold.Sort // for sorts
	total int       // number of its fold of all points, counted from 1; 0: a fold of rows
	empty uint64    // the result of a fold of no points
}

// Folds reports a fold of rows.
func (o *Op) Folds() bool { return o.Class == ir.ClassReduce && o.total == 0 }

// MaxOps is the most row ops of a phase.
const MaxOps = 16

// NewPlan finds the row ops of a kernel's phases.
func NewPlan(s *codegen.Schedule) (*Plan, error) {
	p := &Plan{Schedule: s}
	for i := range s.Phases {
		ph := &s.Phases[i]
		if len(ph.Reduces) > MaxOps {
			return nil, fmt.Errorf("a phase has %d row ops, at most %d are possible", len(ph.Reduces), MaxOps)
		}
		p.most = max(p.most, len(ph.Reduces))
		p.Ops = append(p.Ops, p.opsOf(ph))
	}
	return p, nil
}

func (p *Plan) opsOf(ph *codegen.Phase) []Op {
	list := make([]Op, len(ph.Reduces))
	for i, r := range ph.Reduces {
		value := &ph.Body[r.Value]
		o := Op{Fold: fold.OpOf(r.Op), Class: r.Op.Class(), DT: value.DT, Size: int64(ph.Operands[r.Operand].DT.Size()), Load: -1, temp: r.Operand}
		o.sort = fold.Sort{DT: o.DT, Size: o.Size, Descending: r.Descending, Positions: r.Op.Info().Position}
		if o.Class == ir.ClassReduce {
			o.empty = ph.Denormals.NewFold(r.Op, o.DT).Result()
		}
		if value.Op == ir.Load && value.Args[0] == ir.None {
			o.Load = int(value.Imm)
		}
		if r.Operand < len(ph.Operands)-len(p.Temps) {
			p.totals++
			o.total = p.totals
		}
		list[i] = o
	}
	return list
}
