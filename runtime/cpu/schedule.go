package cpu

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/ccode"
	"github.com/millrace-go/millrace/runtime/cpu/internal/interp"
	"github.com/millrace-go/millrace/runtime/cpu/internal/rows"
)

// schedule is a kernel split into phases: in the form of tier 0, which always exists, and as the
// compiled variants needed so far. Each tier lowers a kernel in its own way before the split, so
// temporaries may differ between tiers; the bits of results do not.
type schedule struct {
	prog    *program
	thin    bool                       // keeps as few temporaries as possible
	plan    *phasePlan                 // for tier 0
	tier0   []blockPhase               // code of its phases
	lowered func() (*phasePlan, error) // for tier 1; computed when compiled code is first needed

	variants atomic.Pointer[[]*variant] // replaced, never edited; read without a lock
	mu       sync.Mutex                 // held to add a variant
}

// phasePlan is the part of a schedule that walkers need.
type phasePlan struct {
	*rows.Plan
	pointTemps int64 // bytes of the temporaries of a point
	sweeps     int   // number of phases over points
	reduces    int   // most reduces of one phase
	scans      bool
	sorts      bool
}

// kernelSymbol is the function name of a printed kernel; names of phases have a number appended.
const kernelSymbol = "mr_kernel"

func newSchedule(p *program, opt codegen.PhaseOptions) (*schedule, error) {
	s := &schedule{prog: p, thin: opt.Recompute}
	opt.Most = maxPhaseOperands
	k, err := interp.Lower(p.kernel, p.soft)
	if err != nil {
		return nil, err
	}
	if s.plan, err = planPhases(codegen.Phases(k, opt)); err != nil {
		return nil, err
	}
	for _, ph := range s.plan.Phases {
		t, err := interp.Compile(ph.Kernel, p.soft)
		if err != nil {
			return nil, err
		}
		s.tier0 = append(s.tier0, blockPhase{t})
	}
	s.lowered = sync.OnceValues(func() (*phasePlan, error) { return lowerForC(p.kernel, opt) })
	return s, nil
}

func planPhases(s *codegen.Schedule) (*phasePlan, error) {
	plan, err := rows.NewPlan(s)
	if err != nil {
		return nil, err
	}
	p := &phasePlan{Plan: plan}
	for _, t := range s.Temps {
		if !t.Row {
			p.pointTemps += int64(t.DT.Size())
		}
	}
	for _, ph := range s.Phases {
		if len(ph.Operands) > maxPhaseOperands {
			return nil, fmt.Errorf("a phase has %d operands and temporaries, at most %d are possible", len(ph.Operands), maxPhaseOperands)
		}
		p.reduces = max(p.reduces, len(ph.Reduces))
		if ph.Level == codegen.Point {
			p.sweeps++
		}
		for _, r := range ph.Reduces {
			p.scans = p.scans || r.Op.Class() == ir.ClassScan
			p.sorts = p.sorts || r.Op.Class() == ir.ClassSort
		}
	}
	return p, nil
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

	heat   atomic.Int64 // of the launches so far, see heatToCompile
	making sync.Mutex   // held to make machine code
	failed atomic.Bool  // a compile failed
	job    *ccode.Job   // makes C of it; nil where no C is compiled
}

// units returns the units to print for a variant, a function for each phase.
func (v *variant) units() ([]cgo.Unit, *phasePlan, error) {
	plan, err := v.sched.lowered()
	if err != nil {
		return nil, nil, err
	}
	return unitsOf(plan.Schedule, &v.key), plan, nil
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
	v := &variant{sched: s, key: *key}
	if s.prog.dev.comp != nil {
		v.job = ccode.NewJob(v)
	}
	list = append(list, v)
	s.variants.Store(&list)
	return v
}
