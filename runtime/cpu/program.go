package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/fold"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
	"github.com/millrace-go/millrace/runtime/cpu/internal/scatter"
)

// program is a kernel that is ready to run.
type program struct {
	dev    *device
	kernel *codegen.Kernel // as produced by fusion
	text   string          // of kernel

	sched *schedule // the default schedule, which stores values that are costly to recompute
	// thin recomputes such values, for rows that fit in no cache. It is made when first needed.
	thin   atomic.Pointer[schedule]
	making sync.Mutex

	forgotten   atomic.Bool  // no known plan uses it
	interpreted atomic.Int64 // launches in tier 0

	hides hides // masks, in chains

	label atomic.Pointer[any] // for profilers, see label.go

	soft    bool // flushes denormals; the interpreter does so in software
	hasRows bool
	parts   *dotParts // for a contraction
	scatter *scatter.Kernel
	writes  []bool // by operand
	perItem int64  // bytes that a point touches, to choose the number of threads
	// lanewise marks the operands that are read only behind guards or through indices. faults
	// reports that an index out of range is an error.
	lanewise []bool
	faults   bool
	// transposable has a bit for each operand that may be transposed.
	transposable uint64
}

// compiled is the loaded code of a schedule.
type compiled struct {
	*phasePlan
	evaluators []evaluator // one per phase
	c          bool        // made by a C compiler
}

func newProgram(d *device, k *codegen.Kernel, text string) (*program, error) {
	if len(k.Operands) > maxOperands {
		return nil, fmt.Errorf("the kernel has %d operands, at most %d are possible", len(k.Operands), maxOperands)
	}
	if err := k.Verify(); err != nil {
		return nil, err
	}
	if len(k.Reduces) > rows.MaxOps || slices.ContainsFunc(k.Reduces, func(r codegen.Reduce) bool { return !codegen.TotalOp(r.Op) || !k.Operands[r.Operand].Row }) {
		return nil, errors.New("the kernel is a single phase, which cannot run alone")
	}
	p := &program{dev: d, kernel: k, text: text, writes: make([]bool, len(k.Operands))}
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
	// Work counts as well as bytes: about eight primitives cost as much as one byte.
	for _, t := range p.sched.tier0 {
		p.perItem += int64(t.Work()) / 8
	}
	p.perItem = max(p.perItem, 1)
	return p, nil
}

// total reports that an operand receives a total.
func (p *program) total(operand int) bool {
	return slices.ContainsFunc(p.kernel.Reduces, func(r codegen.Reduce) bool { return r.Operand == operand })
}

// Kernel returns the kernel as fusion produced it.
func (p *program) Kernel() runtime.Kernel { return p.kernel }

// lean returns the schedule that keeps as few temporaries as possible, or the default one if that
// is no better.
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

// schedules returns the schedules made so far.
func (p *program) schedules() []*schedule {
	list := []*schedule{p.sched}
	if s := p.thin.Load(); s != nil && s != p.sched {
		list = append(list, s)
	}
	return list
}

// folds returns the program's folders.
func (p *program) folds() *fold.Table {
	if d := p.kernel.Denormals; p.dev.target && (d != ir.FlushDenormals || jit.Flushes()) {
		return fold.ByMachine(d)
	}
	return fold.ByGo(p.kernel.Denormals)
}
