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

// schedule is a kernel taken apart into phases: in tier 0 form, which always
// exists, and as the compiled variants that have been asked for so far. The
// tiers lower a kernel before it comes apart, each in its own way, so their
// temporaries may differ; the bits do not.
type schedule struct {
	prog    *program
	thin    bool                              // as little as possible is kept
	plan    *phasePlan                        // of tier 0
	tier0   []*tier0Code                      // of its phases
	lowered func() (*codegen.Schedule, error) // of tier 1, made when compiled code is wanted

	variants atomic.Pointer[[]*variant] // replaced, never edited; read without a lock
	mu       sync.Mutex                 // held to add a variant
}

// phasePlan is what walkers know of a schedule.
type phasePlan struct {
	*codegen.Schedule
	pointTemps int64      // bytes of the temporaries that a point has
	sweeps     int        // phases over points
	reduces    int        // the most that one phase has
	empty      [][]uint64 // of phases and their reduces: what a fold of nothing gives
	scans      bool
	sorts      bool
	rowOps     [][]rowOp // of phases, as the executor takes them
	totals     int
}

// rowOp is a value of a phase that is folded, scanned or sorted into a temporary, or
// folded into a total.
type rowOp struct {
	op         foldOp
	class      ir.Class
	dt         ir.DType // of the values
	temp       int      // the operand that takes the result
	size       int64    // bytes of one element there
	load       int      // the operand whose elements are the values, -1 where they are computed
	descending bool     // of sorts
	positions  bool     // of sorts: where elements were is the result
	total      int      // number of the fold of all points that it is, counted from 1; 0: a row's
	empty      uint64   // what a fold of nothing gives
}

// folds reports a fold of rows.
func (o *rowOp) folds() bool { return o.class == ir.ClassReduce && o.total == 0 }

// maxReduces is the most row ops of a phase.
const maxReduces = 16

// kernelSymbol is the name of the function of a printed kernel; phases are
// numbered.
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

// classKey holds the access classes of a launch's operands, two bits each: in
// phases over points and in those over rows.
type classKey struct {
	points, rows [maxOperands / 32]uint64
	guarded      [2]bool // an output of such a phase has stride 0 along an outer dim
	cols         bool
	dot          bool // a contraction: points is of its first phase, rows of its last
	second       [maxOperands / 32]uint64
}

// maxOperands is what a classKey has room for; maxPhaseOperands counts
// temporaries as well.
const (
	maxOperands      = 64
	maxPhaseOperands = 4 * maxOperands
)

func setClass(k *[maxOperands / 32]uint64, i int, c codegen.AccessClass) {
	k[i/32] |= uint64(c) << (2 * (i % 32))
}

// variant is what the printer needs for a phase. Rows of temporaries lie
// densely, as do their points; along a row a row's value stands still, unless
// rows are columns.
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
	code  atomic.Pointer[compiled] // nil until there is some
	own   atomic.Pointer[compiled] // machine code beside code that came with the program
	noted atomic.Bool              // for those who compile kernels into programs

	heat   atomic.Int64 // of the launches so far, see heatToCompile
	queued atomic.Bool
	making sync.Mutex    // held to make machine code
	failed atomic.Bool   // was compiled in vain, also of own
	done   chan struct{} // closed when compiling has ended, well or not
}

// units are what is printed for a variant, a function for each phase.
func (v *variant) units() ([]cgo.Unit, *codegen.Schedule, error) {
	s, err := v.sched.lowered()
	if err != nil {
		return nil, nil, err
	}
	return unitsOf(s, &v.key, kernelSymbol), s, nil
}

// known are the variants that were asked for. The list must not be changed.
func (s *schedule) known() []*variant {
	if list := s.variants.Load(); list != nil {
		return *list
	}
	return nil
}

// compiled reports a variant that there is code of.
func (s *schedule) compiled() bool {
	return slices.ContainsFunc(s.known(), func(v *variant) bool { return v.code.Load() != nil })
}

// variantFor finds or adds the variant of a class.
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
