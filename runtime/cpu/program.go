package cpu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel made ready to run.
type program struct {
	dev    *device
	kernel *codegen.Kernel // as fusion wrote it
	rows   *codegen.Kernel // the same, its reductions instructions of the body
	text   string          // of kernel

	sched *schedule // keeps what is dear to compute
	// thin computes it again, for rows that no cache holds. Made when wanted.
	thin   atomic.Pointer[schedule]
	making sync.Mutex

	hasRows bool
	parts   *dotParts // of a contraction
	writes  []bool    // per operand
	perItem int64     // bytes that a point touches, for the choice of threads
	// Of operands that are read behind guards or through indices only; and
	// whether an index out of range is a fault.
	lanewise []bool
	faults   bool
}

// compiled is a schedule as loaded code.
type compiled struct {
	*phasePlan
	funcs []unsafe.Pointer // of the phases
}

func newProgram(d *device, k *codegen.Kernel, text string) (*program, error) {
	if len(k.Operands) > maxOperands {
		return nil, fmt.Errorf("%d operands, %d are possible", len(k.Operands), maxOperands)
	}
	if err := k.Verify(); err != nil {
		return nil, err
	}
	p := &program{dev: d, kernel: k, rows: asRows(k), text: text, writes: make([]bool, len(k.Operands))}
	p.hasRows = p.rows.HasRows()
	p.lanewise, p.faults = lanewise(p.rows)
	var err error
	if p.sched, err = newSchedule(p, codegen.PhaseOptions{}); err != nil {
		return nil, err
	}
	if p.sched.plan.Contraction() {
		p.parts = partsOf(p.rows)
	}
	for _, s := range p.rows.Stores {
		p.writes[s.Operand] = true
	}
	for _, o := range k.Operands {
		p.perItem += int64(o.DT.Size())
	}
	// Work counts as well as bytes: some eight primitives cost what a byte costs.
	for _, t := range p.sched.tier0 {
		p.perItem += int64(t.work) / 8
	}
	p.perItem = max(p.perItem, 1)
	return p, nil
}

// asRows makes reductions of a kernel's end instructions of its body.
func asRows(k *codegen.Kernel) *codegen.Kernel {
	if len(k.Reduces) == 0 {
		return k
	}
	r := &codegen.Kernel{Scalars: k.Scalars}
	r.Operands = append(r.Operands, k.Operands...)
	r.Body = append(r.Body, k.Body...)
	r.Stores = append(r.Stores, k.Stores...)
	for _, red := range k.Reduces {
		in := ir.Instr{Op: red.Op, DT: k.Operands[red.Operand].DT, Args: [4]ir.Ref{red.Value, ir.None, ir.None, ir.None}}
		r.Stores = append(r.Stores, codegen.Store{Operand: red.Operand, Value: ir.Ref(len(r.Body))})
		r.Body = append(r.Body, in)
		r.Operands[red.Operand].Row = true
	}
	return r
}

// Kernel is the kernel as fusion wrote it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// lean is the schedule that keeps as little as it can, the other one where it
// cannot be had.
func (p *program) lean() *schedule {
	if s := p.thin.Load(); s != nil {
		return s
	}
	p.making.Lock()
	defer p.making.Unlock()
	if s := p.thin.Load(); s != nil {
		return s
	}
	s, err := newSchedule(p, codegen.PhaseOptions{Recompute: true})
	if err != nil || s.plan.pointTemps == p.sched.plan.pointTemps {
		if err == nil {
			s.free()
		}
		s = p.sched
	}
	p.thin.Store(s)
	return s
}

// free gives the C memory of all block programs back.
func (p *program) free() {
	p.sched.free()
	if s := p.thin.Load(); s != nil && s != p.sched {
		s.free()
	}
}
