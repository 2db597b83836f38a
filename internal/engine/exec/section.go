package exec

import (
	"slices"
	"time"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/operror"
	"github.com/millrace-go/millrace/internal/profile"
	"github.com/millrace-go/millrace/runtime"
)

// section is the part of a Bound's launches that the device runs in one go: all of them if there
// are no host ops.
type section struct {
	waits    []int // host ops for which it waits
	first, n int   // launches of the Bound
	launches []runtime.Launch
	places   [][]runtime.Place // by slot of inputs and fresh
	parts    []boundPart       // those of the Bound in the first section that has launches, whose runs count in reports

	// Used by the lane that runs it.
	at       []runtime.Buffer // by slot: the buffer in the launches' places, nil for none
	prepared runtime.Prepared
	over     []bool // by slot: the value of over with which the list was prepared
	wait     int    // runs until the list is prepared; waited is the number after the last attempt
	waited   int
	ran      profile.List
}

// take takes the section's launches from the Bound.
func (s *section) take(b *Bound) {
	s.launches = b.launches[s.first : s.first+s.n : s.first+s.n]
	s.places, s.at = make([][]runtime.Place, len(b.places)), make([]runtime.Buffer, len(b.places))
	for slot, list := range b.places {
		for _, at := range list {
			if n := int(at.Launch) - s.first; n >= 0 && n < s.n {
				s.places[slot] = append(s.places[slot], runtime.Place{Launch: int32(n), Arg: at.Arg})
			}
		}
	}
}

// put stores a run's buffers in the prepared list, or else in the launches. It returns false if
// one does not fit in the prepared list.
func (s *section) put(blocks []*memory.Block) bool {
	for slot, at := range s.places {
		buf := blocks[slot].Buf
		if s.at[slot] == buf {
			continue
		}
		if s.prepared == nil {
			fill(s.launches, at, buf)
		} else if !s.prepared.Set(at, buf) {
			return false
		}
		s.at[slot] = buf
	}
	return true
}

// fill stores a buffer in launches.
func fill(list []runtime.Launch, places []runtime.Place, buf runtime.Buffer) {
	for _, at := range places {
		list[at.Launch].Args[at.Arg].Buf = buf
	}
}

// forget drops buffers that the next run is unlikely to use, so that the Bound does not keep
// other memory alive. It keeps inputs that a run overwrites, as states of a loop are. A prepared
// list holds addresses only.
func (s *section) forget(keep []bool) {
	for slot := range s.at {
		if !keep[slot] && s.at[slot] != nil {
			s.at[slot] = nil
			if s.prepared == nil {
				fill(s.launches, s.places[slot], nil)
			}
		}
	}
}

// run runs the list with the buffers of one run: the prepared list, or else the launches.
func (s *section) run(r *run, segment uint64) (err error) {
	defer operror.Recover("run", &err)
	if s.n == 0 && len(r.b.hosts) > 0 {
		return nil
	}
	x := r.by
	if s.prepared != nil && x.Watched() && s.ran.Due() {
		return s.timed(x, r.blocks, segment)
	}
	if s.prepared != nil {
		if slices.Equal(r.over, s.over) && s.put(r.blocks) {
			return s.ready(x, segment)
		}
		s.unprepare()
	}
	s.put(r.blocks)
	if x.Watched() {
		s.tell()
	}
	if err = x.Launch(s.launches, &s.ran, x.submitter(segment)); err == nil {
		s.prepare(r)
	}
	return err
}

// timed runs the list launch by launch to measure it, and leaves the prepared list as it is.
// Preparing the list again would cost as much as many runs.
func (s *section) timed(x *Binder, blocks []*memory.Block, segment uint64) error {
	list := slices.Clone(s.launches)
	for i := range list {
		list[i].Args = slices.Clone(list[i].Args)
	}
	for slot, at := range s.places {
		fill(list, at, blocks[slot].Buf)
	}
	s.tell()
	return x.Launch(list, &s.ran, x.submitter(segment))
}

// tell counts one run in the report of every plan.
func (s *section) tell() {
	for i := range s.parts {
		s.parts[i].known.List().Elsewhere()
	}
}

// ready runs the prepared list.
func (s *section) ready(x *Binder, segment uint64) error {
	if !x.Watched() {
		return s.prepared.Run()
	}
	start := time.Now()
	err := s.prepared.Run()
	if err == nil {
		s.tell()
		x.Ran(len(s.launches), &s.ran, x.submitter(segment), start)
	}
	return err
}

// prepare asks the device to prepare the list. If the device cannot do it yet, later runs ask
// again, each time after a longer wait. Which launches may run at the same time depends on the
// slots that overwrite inputs.
func (s *section) prepare(r *run) {
	p, ok := r.by.Driver.(runtime.Preparer)
	if !ok {
		return
	}
	if s.wait > 0 {
		s.wait--
		return
	}
	s.prepared, s.over = p.Prepare(s.launches, r.b.ownOf(s)), append(s.over[:0], r.over...)
	s.waited = min(2*s.waited+1, longestWait)
	s.wait = s.waited
}

// longestWait is the largest number of runs between two attempts to prepare a list.
const longestWait = 256

// unprepare closes the prepared list.
func (s *section) unprepare() {
	if s.prepared != nil {
		s.prepared.Close()
		s.prepared = nil
		clear(s.at) // the launches hold buffers of earlier runs
	}
}
