package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
)

// schedule is a kernel split into phases: in the form of tier 0, which always exists, and as the
// compiled variants needed so far. Each tier lowers a kernel in its own way before the split, so
// temporaries may differ between tiers; the bits of results do not.
type schedule struct {
	prog    *program
	thin    bool                              // keeps as few temporaries as possible
	plan    *phasePlan                        // for tier 0
	tier0   []*tier0Code                      // code of its phases
	lowered func() (*codegen.Schedule, error) // for tier 1; computed when compiled code is first needed

	variants atomic.Pointer[[]*variant] // replaced, never edited; read without a lock
	mu       sync.Mutex                 // held to add a variant
}

// phasePlan is the part of a schedule that walkers need.
type phasePlan struct {
	*codegen.Schedule
	pointTemps int64      // bytes of the temporaries of a point
	sweeps     int        // number of phases over points
	reduces    int        // most reduces of one phase
	empty      [][]uint64 // by phase and reduce: the result of a fold of no points
	scans      bool
	sorts      bool
	rowOps     [][]rowOp // by phase, in the executor's form
	totals     int
}

// rowOp is a value of a phase that is folded, scanned or sorted into a temporary, or folded into a
// total.
type rowOp struct {
	op         foldOp
	class      ir.Class
	dt         ir.DType // of the values
	temp       int      // the operand that takes the result
	size       int64    // bytes of one element of the result
	load       int      // the operand whose elements are the values; -1: values are computed
	descending bool     // for sorts
	positions  bool     // for sorts: the result is the elements' old positions
	total      int      // number of its fold of all points, counted from 1; 0: a fold of rows
	empty      uint64   // the result of a fold of no points
}

// folds reports a fold of rows.
func (o *rowOp) folds() bool { return o.class == ir.ClassReduce && o.total == 0 }

// maxReduces is the most row ops of a phase.
const maxReduces = 16

// kernelSymbol is the function name of a printed kernel; names of phases have a number appended.
const kernelSymbol = "mr_kernel"

func newSchedule(p *program, opt codegen.PhaseOptions) (*schedule, error) {
	s := &schedule{prog: p, thin: opt.Recompute}
	opt.Most = maxPhaseOperands
	k, err := lowerForBlocks(p.kernel, p.soft)
	if err != nil {
		return nil, err
	}
	if s.plan, err = planPhases(codegen.Phases(k, opt)); err != nil {
		return nil, err
	}
	for _, ph := range s.plan.Phases {
		t, err := buildLowered(ph.Kernel, p.soft)
		if err != nil {
			return nil, err
		}
		s.tier0 = append(s.tier0, t)
	}
	s.lowered = sync.OnceValues(func() (*codegen.Schedule, error) {
		return lowerForC(p.kernel, opt)
	})
	return s, nil
}

func planPhases(s *codegen.Schedule) (*phasePlan, error) {
	p := &phasePlan{Schedule: s}
	for _, t := range s.Temps {
		if !t.Row {
			p.pointTemps += int64(t.DT.Size())
		}
	}
	for _, ph := range s.Phases {
		if len(ph.Operands) > maxPhaseOperands {
			return nil, fmt.Errorf("%d operands and temporaries, %d are possible", len(ph.Operands), maxPhaseOperands)
		}
		if len(ph.Reduces) > maxReduces {
			return nil, fmt.Errorf("%d row ops in one phase, %d are possible", len(ph.Reduces), maxReduces)
		}
		p.reduces = max(p.reduces, len(ph.Reduces))
		if ph.Level == codegen.Point {
			p.sweeps++
		}
		empty := make([]uint64, len(ph.Reduces))
		for i, r := range ph.Reduces {
			if r.Op.Class() == ir.ClassReduce {
				empty[i] = ph.Denormals.NewFold(r.Op, ph.Body[r.Value].DT).Result()
			}
			p.scans = p.scans || r.Op.Class() == ir.ClassScan
			p.sorts = p.sorts || r.Op.Class() == ir.ClassSort
		}
		p.empty = append(p.empty, empty)
		p.rowOps = append(p.rowOps, p.rowOpsOf(&ph, empty))
	}
	return p, nil
}

func (p *phasePlan) rowOpsOf(ph *codegen.Phase, empty []uint64) []rowOp {
	list := make([]rowOp, len(ph.Reduces))
	for i, r := range ph.Reduces {
		value := &ph.Body[r.Value]
		o := rowOp{
			op: foldOps[r.Op], class: r.Op.Class(), dt: value.DT, temp: r.Operand, size: int64(ph.Operands[r.Operand].DT.Size()), load: -1,
			descending: r.Descending, positions: r.Op.Info().Position, empty: empty[i],
		}
		if value.Op == ir.Load && value.Args[0] == ir.None {
			o.load = int(value.Imm)
		}
		if r.Operand < len(ph.Operands)-len(p.Temps) {
			p.totals++
			o.total = p.totals
		}
		list[i] = o
	}
	return list
}

// classKey holds the access classes of a launch's operands, two bits each, for phases over points
// and for phases over rows.
type classKey struct {
	points, rows [maxOperands / 32]uint64
	guarded      [2]bool // an output of such a phase has stride 0 along an outer dim
	cols         bool
	dot          bool // a contraction: points is for its first phase, second for the second, rows for the last
	second       [maxOperands / 32]uint64
}

// maxOperands is the most operands in a classKey; maxPhaseOperands includes temporaries.
const (
	maxOperands      = 64
	maxPhaseOperands = 4 * maxOperands
)

func setClass(k *[maxOperands / 32]uint64, i int, c codegen.AccessClass) {
	k[i/32] |= uint64(c) << (2 * (i % 32))
}

// variant returns the printer's input for a phase. Rows of temporaries are dense, and so are their
// points. A row's value is constant along the row, unless rows are walked as columns.
func (k *classKey) variant(i int, ph *codegen.Phase, temps []codegen.Temp) cgo.Variant {
	of, guarded := &k.points, k.guarded[0]
	if ph.Level == codegen.Row {
		of, guarded = &k.rows, k.guarded[1]
	} else if k.dot && i == partB {
		of = &k.second
	}
	n := len(ph.Operands) - len(temps)
	v := cgo.Variant{Guarded: guarded}
	if !k.dot {
		v.Streams = n // see ready.streams
	}
	for i := range n {
		v.Class = append(v.Class, codegen.AccessClass(of[i/32]>>(2*(i%32))&3))
	}
	for _, t := range temps {
		c := codegen.Contiguous
		if t.Row && ph.Level == codegen.Point && !k.cols {
			c = codegen.Splat
		}
		v.Class = append(v.Class, c)
	}
	return v
}

// variant is a schedule for one combination of access classes.
type variant struct {
	sched *schedule
	key   classKey
	code  atomic.Pointer[compiled] // nil until code exists
	own   atomic.Pointer[compiled] // machine code, if code was compiled into the program
	noted atomic.Bool              // recorded, for tools that compile kernels into programs

	heat    atomic.Int64 // of the launches so far, see heatToCompile
	queued  atomic.Bool
	awaited int           // launches that wait for done; guarded by the compiler's mu
	making  sync.Mutex    // held to make machine code
	failed  atomic.Bool   // a compile failed, also one of own
	done    chan struct{} // closed when compiling has ended, with or without success
}

// units returns the units to print for a variant, a function for each phase.
func (v *variant) units() ([]cgo.Unit, *codegen.Schedule, error) {
	s, err := v.sched.lowered()
	if err != nil {
		return nil, nil, err
	}
	return unitsOf(s, &v.key, kernelSymbol), s, nil
}

// known returns the variants needed so far. The caller must not change the list.
func (s *schedule) known() []*variant {
	if list := s.variants.Load(); list != nil {
		return *list
	}
	return nil
}

// compiled reports that code exists for some variant.
func (s *schedule) compiled() bool {
	return slices.ContainsFunc(s.known(), func(v *variant) bool { return v.code.Load() != nil })
}

// variantFor finds or adds the variant for a class.
func (s *schedule) variantFor(key *classKey) *variant {
	for _, v := range s.known() {
		if v.key == *key {
			return v
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.known())
	for _, v := range list {
		if v.key == *key {
			return v
		}
	}
	v := &variant{sched: s, key: *key, done: make(chan struct{})}
	if code := s.prog.dev.findShipped(v); code != nil {
		v.code.Store(code)
	}
	list = append(list, v)
	s.variants.Store(&list)
	return v
}
