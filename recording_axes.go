package millrace

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/stream"
)

// Axes are the names of an input's axes, one for each dimension, with "" for a size that is
// always the same. Axes with the same name have the same size, also in several inputs.
type Axes []string

// mostSizes is how many sizes a Recording keeps tapes for.
const mostSizes = 32

// variable holds a Recording's tapes for each size of the named axes.
type variable struct {
	names []string
	of    [][]int // per input and axis the index of the name, or -1

	mu       sync.Mutex
	tapes    []sizedTape // the most recently used at the end
	generals []*generalTape

	making sync.Mutex  // held while a general tape is made, or given up
	gone   atomic.Bool // the function released it in a trial: release it when the trial has ended
}

// make locks making, and reports whether it did. It does not lock inside of a trial, because the
// trial's caller holds the lock and would wait forever.
func (v *variable) make() bool {
	if v.making.TryLock() {
		return true
	}
	if operror.Within(tries) > 0 {
		return false
	}
	v.making.Lock()
	return true
}

// tries is the name of the function that makes trials, in a stack trace.
const tries = "github.com/millrace-go/millrace.(*Recording).try"

type sizedTape struct {
	sizes []int
	tape  *stream.Tape
}

// generalTape holds the common part of the tapes for all sizes that are 0 or 1 at the same axes. A
// goroutine that makes one, or gives it up, holds making.
type generalTape struct {
	small []int           // the sizes, -1 for those above 1
	g     *stream.General // nil: the function must be called
	tried []*stream.Tape  // without success
}

// mostTries is how many tapes are generalised before giving up. The first tape may come from a
// program that was still starting, and whose weights were not in memory yet.
const mostTries = 3

func newVariable(axes []Axes) *variable {
	if len(axes) == 0 {
		return nil
	}
	v := &variable{}
	for _, list := range axes {
		var of []int
		for _, name := range list {
			n := -1
			if name != "" {
				if n = slices.Index(v.names, name); n < 0 {
					n = len(v.names)
					v.names = append(v.names, name)
				}
			}
			of = append(of, n)
		}
		v.of = append(v.of, of)
	}
	return v
}

// sizes returns the inputs' sizes along the named axes.
func (v *variable) sizes(in []*Tensor) ([]int, error) {
	if len(in) != len(v.of) {
		return nil, fmt.Errorf("%w: %d inputs were given for a Recording that names the axes of %d", ErrShape, len(in), len(v.of))
	}
	sizes := slices.Repeat([]int{-1}, len(v.names))
	for i, t := range in {
		shape := t.v.Shape()
		if len(shape) != len(v.of[i]) {
			return nil, fmt.Errorf("%w: input %d of a Recording has shape %v, the number of named axes is %d", ErrShape, i, shape, len(v.of[i]))
		}
		for d, n := range v.of[i] {
			if n < 0 {
				continue
			}
			if sizes[n] >= 0 && sizes[n] != shape[d] {
				return nil, fmt.Errorf("%w: input %d of a Recording has shape %v, but axis %q of earlier inputs is %d", ErrShape, i, shape, v.names[n], sizes[n])
			}
			sizes[n] = shape[d]
		}
	}
	return sizes, nil
}

// find returns the tape for these sizes: an existing one, or one derived from another size's; nil
// if the function must be called. Another goroutine may release the tape meanwhile.
func (v *variable) find(r *Recording, sizes []int) *stream.Tape {
	if t := v.known(sizes); t != nil {
		return t
	}
	if !v.make() {
		return nil
	}
	defer v.making.Unlock()
	if t := v.known(sizes); t != nil {
		return t
	}
	g := v.general(r, sizes)
	if v.gone.Swap(false) {
		v.giveUp()
		return nil
	}
	if g == nil {
		return nil
	}
	t, err := g.At(sizes)
	if err != nil {
		return nil
	}
	v.keep(sizes, t)
	return t
}

func (v *variable) known(sizes []int) *stream.Tape {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := len(v.tapes) - 1; i >= 0; i-- {
		if t := v.tapes[i]; slices.Equal(t.sizes, sizes) {
			copy(v.tapes[i:], v.tapes[i+1:])
			v.tapes[len(v.tapes)-1] = t
			return t.tape
		}
	}
	return nil
}

// keep makes a tape the one for these sizes; a nil tape removes it.
func (v *variable) keep(sizes []int, tape *stream.Tape) {
	v.mu.Lock()
	var gone []*stream.Tape
	v.tapes = slices.DeleteFunc(v.tapes, func(t sizedTape) bool {
		if slices.Equal(t.sizes, sizes) {
			gone = append(gone, t.tape)
			return true
		}
		return false
	})
	if tape != nil {
		v.tapes = append(v.tapes, sizedTape{sizes, tape})
	}
	if len(v.tapes) > mostSizes {
		gone = append(gone, v.tapes[0].tape)
		v.tapes = slices.Delete(v.tapes, 0, 1)
	}
	v.mu.Unlock()
	for _, t := range gone {
		t.Release()
	}
}

// recorded keeps the tape that the function recorded at these sizes. If it replaces another, the
// dtypes or layouts may have changed, so the tapes of all other sizes are released too.
func (v *variable) recorded(sizes []int, tape *stream.Tape, replaces bool) {
	if replaces {
		v.release()
	}
	v.keep(sizes, tape)
}

func (v *variable) release() {
	if !v.make() {
		v.gone.Store(true)
		return
	}
	defer v.making.Unlock()
	v.giveUp()
}

// giveUp releases all tapes. making is held.
func (v *variable) giveUp() {
	v.mu.Lock()
	tapes, generals := v.tapes, v.generals
	v.tapes, v.generals = nil, nil
	v.mu.Unlock()
	for _, t := range tapes {
		t.tape.Release()
	}
	for _, g := range generals {
		if g.g != nil {
			g.g.Release()
		}
	}
}

// small returns the sizes that are 0 or 1, and -1 for the others.
func small(sizes []int) []int {
	list := slices.Clone(sizes)
	for i, n := range list {
		if n > 1 {
			list[i] = -1
		}
	}
	return list
}

// undecided reports whether a recording at such sizes may still be generalised to others.
func (v *variable) undecided(sizes []int) bool {
	if !v.make() {
		return false
	}
	defer v.making.Unlock()
	v.mu.Lock()
	g := v.like(sizes)
	v.mu.Unlock()
	return g.undecided()
}

// like returns the general tape for the sizes that are 0 or 1 at the same axes as these. mu is
// held.
func (v *variable) like(sizes []int) *generalTape {
	small := small(sizes)
	for _, g := range v.generals {
		if slices.Equal(g.small, small) {
			return g
		}
	}
	g := &generalTape{small: small}
	v.generals = append(v.generals, g)
	return g
}

func (g *generalTape) undecided() bool { return g.g == nil && len(g.tried) < mostTries }

// general returns what the tapes at such sizes have in common. If there is a tape that was not
// tried yet, it finds that out by trials.
func (v *variable) general(r *Recording, sizes []int) *stream.General {
	v.mu.Lock()
	here := v.like(sizes)
	var from sizedTape
	for _, t := range v.tapes {
		if slices.Equal(small(t.sizes), here.small) && !slices.Contains(here.tried, t.tape) {
			from = t
		}
	}
	v.mu.Unlock()
	if from.tape == nil || !here.undecided() {
		return here.g
	}
	if here.g = stream.Generalise(from.tape, v.of, from.sizes, r.try); here.g == nil {
		here.tried = append(here.tried, from.tape)
	}
	return here.g
}

// try calls the function in a trial. It ignores an error or a panic, because the function fails
// again when it is called with values.
//
//go:noinline
func (r *Recording) try(trial *stream.Trial) {
	defer func() { _ = recover() }()
	s := &Stream{trial.Stream()}
	_ = s.Scope(func(sc *Scope) error {
		var args []*Tensor
		for range r.sized.of {
			t := new(Tensor)
			trial.Argument(&t.v, sc.sc)
			args = append(args, t)
		}
		var sealed sealed
		sealed.begin()
		results, err := r.f(sc, args)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(results, func(t *Tensor) bool { return !t.made() }) {
			return errNilTensor
		}
		var values []*stream.Value
		for _, t := range sealed.results(results) {
			values = append(values, &t.v)
		}
		trial.Results(values)
		return nil
	})
}
