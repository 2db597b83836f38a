package cpu

import (
	"fmt"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// mode is the order in which a launch visits its dims; run.h names the same.
type mode int

const (
	modeNone mode = iota // nothing is reduced
	modeRows             // kept dims, then reduced dims
	modeCols             // kept dims but the last, reduced dims, the last kept dim
)

// minColumns is the size of the last kept dim from which a reduction goes over
// it in vectors.
const minColumns = 16

// ready is a launch that can run: checked, its order chosen, its code found.
type ready struct {
	l     *runtime.Launch
	p     *program
	mode  mode
	code  unsafe.Pointer // compiled function, nil for tier 0
	total int64          // points
	empty bool           // nothing to do
}

// dim gives the dim of the launch that stands at place d of the domain.
func (r *ready) dim(d int) int {
	l := r.l
	switch {
	case r.mode != modeCols || d < l.Kept-1:
		return d
	case d == l.Rank-1:
		return l.Kept - 1
	}
	return d + 1
}

// prepare checks a launch and chooses how it runs.
func (d *device) prepare(l *runtime.Launch) (ready, error) {
	r := ready{l: l}
	p, ok := l.Prog.(*program)
	if !ok || p.dev != d {
		return r, fmt.Errorf("the program is of another device")
	}
	r.p = p
	if err := r.check(); err != nil {
		return r, err
	}
	r.total = 1
	outputs := int64(1)
	for i, n := range l.Dims[:l.Rank] {
		r.total *= n
		if i < l.Kept {
			outputs *= n
		}
	}
	if outputs == 0 || r.total == 0 && len(p.kernel.Reduces) == 0 {
		r.empty = true
		return r, nil
	}
	if len(p.kernel.Reduces) > 0 {
		r.mode = r.reduceMode()
	}
	d.account(&r)
	d.choose(&r)
	return r, nil
}

func (r *ready) check() error {
	l, k := r.l, r.p.kernel
	switch {
	case len(l.Args) != len(k.Operands):
		return fmt.Errorf("%d args for %d operands", len(l.Args), len(k.Operands))
	case len(l.Scalars) != len(k.Scalars):
		return fmt.Errorf("%d scalars, the kernel has %d", len(l.Scalars), len(k.Scalars))
	case l.Rank < 0 || l.Rank > runtime.MaxRank || l.Kept < 0 || l.Kept > l.Rank:
		return fmt.Errorf("rank %d with %d kept dims", l.Rank, l.Kept)
	case len(k.Reduces) == 0 && l.Kept != l.Rank:
		return fmt.Errorf("%d reduced dims in a kernel that reduces nothing", l.Rank-l.Kept)
	}
	for i := range l.Args {
		if k.Operands[i].Kind == codegen.Index {
			continue
		}
		b, ok := l.Args[i].Buf.(*buffer)
		if !ok {
			return fmt.Errorf("operand %d has no buffer of this device", i)
		}
		lo, hi := reach(&l.Args[i], l.Dims[:l.Rank])
		if lo <= hi && (lo < 0 || hi >= b.bytes/int64(k.Operands[i].DT.Size())) {
			return fmt.Errorf("operand %d reaches elements %d to %d of %d bytes", i, lo, hi, b.bytes)
		}
	}
	return nil
}

// reach is the lowest and the highest element that an access may touch, lo
// above hi where it touches none.
func reach(a *runtime.Access, dims []int64) (lo, hi int64) {
	lo, hi = bounds(a.Offset, dims, a.Stride[:len(dims)])
	for i := range a.Stages {
		if lo > hi {
			break
		}
		s := &a.Stages[i]
		lo, hi = bounds(s.Offset, s.Dims, s.Stride)
	}
	return lo, hi
}

func bounds(off int64, dims, stride []int64) (lo, hi int64) {
	lo, hi = off, off
	for i, n := range dims {
		if n == 0 {
			return 0, -1
		}
		if step := stride[i] * (n - 1); step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}

// reduceMode chooses which dim is innermost in a reduction: the last kept one
// where more operands are dense along it than along the last reduced one.
func (r *ready) reduceMode() mode {
	l, k := r.l, r.p.kernel
	if l.Kept == 0 || l.Kept == l.Rank || r.total == 0 || l.Dims[l.Kept-1] < minColumns {
		return modeRows
	}
	votes := 0
	for i, o := range k.Operands {
		a := &l.Args[i]
		if o.Kind == codegen.Input && len(a.Stages) == 0 {
			if a.Stride[l.Kept-1] == 1 {
				votes++
			}
			if a.Stride[l.Rank-1] == 1 {
				votes--
			}
		}
		if !r.p.writes[i] {
			continue
		}
		// A tile of columns leaves the outer kept dims behind, and with them
		// what tells the points that store from those that do not.
		for d := 0; d < l.Kept-1; d++ {
			if a.Stride[d] == 0 && l.Dims[d] > 1 {
				return modeRows
			}
		}
	}
	if votes > 0 {
		return modeCols
	}
	return modeRows
}

// guard has bit d set where the output's points other than those at position 0
// of place d do not store.
func (r *ready) guard(i int) uint32 {
	l := r.l
	if r.p.kernel.Operands[i].Kind != codegen.Output {
		return 0
	}
	var g uint32
	for d := range l.Rank {
		dim := r.dim(d)
		if l.Args[i].Stride[dim] == 0 && l.Dims[dim] > 1 && (r.p.writes[i] || dim < l.Kept) {
			g |= 1 << d
		}
	}
	return g
}

// classKey of the launch, in the order it runs in.
func (r *ready) classKey() classKey {
	var key classKey
	l := r.l
	inner, n := 0, int64(1) // one point where there are no dims
	if l.Rank > 0 {
		inner = r.dim(l.Rank - 1)
		n = l.Dims[inner]
	}
	for i := range l.Args {
		if r.p.kernel.Operands[i].Kind == codegen.Output && !r.p.writes[i] {
			continue // of a Reduce: not the kernel's affair
		}
		key.set(i, codegen.Classify(&l.Args[i], inner, n))
		if r.p.writes[i] && r.guard(i)&^(1<<max(l.Rank-1, 0)) != 0 {
			key.guarded = true
		}
	}
	return key
}

// choose finds compiled code, or has it made.
func (d *device) choose(r *ready) {
	if d.comp == nil {
		d.interpreted(r)
		return
	}
	v := r.p.variantFor(r.classKey())
	if r.code = v.entry(); r.code != nil {
		return
	}
	d.comp.want(v, r.total*r.p.perItem)
	if r.code = v.entry(); r.code != nil {
		return
	}
	d.interpreted(r)
	if v.failed.Load() {
		d.count.fallbacks.Add(1)
	}
}

// interpreted counts a launch in tier 0.
func (d *device) interpreted(r *ready) {
	d.count.tier0.Add(1)
	if r.p.tier0.refused() {
		d.count.fallbacks.Add(1)
	}
}
