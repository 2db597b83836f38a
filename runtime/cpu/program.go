package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// program is a kernel made ready to run.
type program struct {
	dev    *device
	kernel *codegen.Kernel // as fusion wrote it
	text   string          // of kernel

	sched *schedule // keeps what is dear to compute
	// thin computes it again, for rows that no cache holds. Made when wanted.
	thin   atomic.Pointer[schedule]
	making sync.Mutex

	forgotten   atomic.Bool  // no known plan uses it
	interpreted atomic.Int64 // launches in tier 0

	shipped []*shipped // its code, compiled into the program
	hides   hides      // in chains

	label atomic.Pointer[any] // for profilers, see label.go

	soft    bool // flushes denormals: in software, where it is interpreted
	hasRows bool
	parts   *dotParts // of a contraction
	scatter *scatterParts
	writes  []bool // per operand
	perItem int64  // bytes that a point touches, for the choice of threads
	// Of operands that are read behind guards or through indices only; and
	// whether an index out of range is a fault.
	lanewise []bool
	faults   bool
	// transposable are the operands that may be transposed, a bit each.
	transposable uint64
}

// compiled is a schedule as loaded code.
type compiled struct {
	*phasePlan
	evaluators []evaluator // of the phases
	printed    *cgo.ISA    // what its C was printed for; nil of machine code
	shipped    *shipped    // where it came with the program
}

// compiledC is code that a C compiler made, a function for each phase.
func compiledC(plan *phasePlan, units []cgo.Unit, funcs []unsafe.Pointer, isa *cgo.ISA) *compiled {
	c := &compiled{phasePlan: plan, printed: isa}
	for i := range units {
		c.evaluators = append(c.evaluators, newCPhase(c, funcs[i], &units[i]))
	}
	return c
}

func newProgram(d *device, k *codegen.Kernel, key uint64, text string) (*program, error) {
	if len(k.Operands) > maxOperands {
		return nil, fmt.Errorf("%d operands, %d are possible", len(k.Operands), maxOperands)
	}
	if err := k.Verify(); err != nil {
		return nil, err
	}
	if len(k.Reduces) > maxReduces || slices.ContainsFunc(k.Reduces, func(r codegen.Reduce) bool { return !codegen.TotalOp(r.Op) || !k.Operands[r.Operand].Row }) {
		return nil, errors.New("a phase is no kernel")
	}
	fnIndex() // some 0.2 ms, once
	p := &program{dev: d, kernel: k, text: text, writes: make([]bool, len(k.Operands))}
	p.shipped = d.shippedOf(key, text)
	p.soft = k.Denormals == ir.FlushDenormals
	p.hasRows = k.HasRows()
	p.lanewise, p.faults = lanewise(k)
	var err error
	if p.sched, err = newSchedule(p, codegen.PhaseOptions{}); err != nil {
		return nil, err
	}
	if p.sched.plan.Contraction() {
		p.parts = partsOf(k)
	}
	p.transposable = transposable(k, p.parts != nil)
	p.scatter = scatterOf(k)
	for _, s := range k.Stores {
		p.writes[s.Operand] = true
	}
	for _, t := range k.Reduces {
		p.writes[t.Operand] = true
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

// total reports an operand that takes a total.
func (p *program) total(operand int) bool {
	return slices.ContainsFunc(p.kernel.Reduces, func(r codegen.Reduce) bool { return r.Operand == operand })
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
		s = p.sched
	}
	p.thin.Store(s)
	return s
}

// schedules are those that were made.
func (p *program) schedules() []*schedule {
	list := []*schedule{p.sched}
	if s := p.thin.Load(); s != nil && s != p.sched {
		list = append(list, s)
	}
	return list
}
