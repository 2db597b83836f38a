package gpurun

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// prepared is a list of launches that was cut into dispatches once. A run puts the buffers of the run
// into the dispatches and submits them. Buffers that come again get a recording, which later runs with
// them submit: results that alternate between two buffers have two recordings. Of other lists, those
// sections are recorded whose buffers come again. The buffers are compared before each run.
type prepared struct {
	dev     *Runner
	list    []runtime.Launch // with arguments of its own
	cut     *cutList         // nil if there is none
	cuts    int              // how often the list was cut
	bad     bool             // the list cannot be cut
	borrows bool             // scratch memory is allocated for each run, not for all
	now     []place          // the buffers of a run
	plays   []Work           // of a part that runs
	replays int64            // its launches that run as recorded

	takes takes

	habits   []habit   // by operand
	need     int       // the calm of operands in recorded sections
	sections *sections // nil if there are none
	refused  bool      // sections cannot be recorded
}

var _ runtime.Preparer = (*Runner)(nil)

// Prepare cuts a list into dispatches. It returns nil if the Device has no recordings, or if
// something fails: Run then has the same error.
func (d *Runner) Prepare(list []runtime.Launch, _ []runtime.Buffer) runtime.Prepared {
	if _, ok := d.gpu.(Recorder); !ok || len(list) == 0 || d.enter() != nil {
		return nil
	}
	p := &prepared{dev: d, list: copyList(list)}
	if !p.ready(p.list) {
		p.Close()
		return nil
	}
	p.watch()
	p.takes.find(p.now) // the list has run with these buffers
	return p
}

func copyList(list []runtime.Launch) []runtime.Launch {
	list = slices.Clone(list)
	for i := range list {
		list[i].Args, list[i].Scalars = slices.Clone(list[i].Args), slices.Clone(list[i].Scalars)
	}
	return list
}

// Set replaces the buffer at the given places. Run finds out whether it fits.
func (p *prepared) Set(places []runtime.Place, buf runtime.Buffer) bool {
	b, err := p.dev.memory.own(buf)
	if err != nil {
		return false
	}
	for _, at := range places {
		p.list[at.Launch].Args[at.Arg].Buf = b
	}
	return true
}

// Run submits the list. A list that cannot be prepared runs as by Device.Run.
func (p *prepared) Run() (err error) {
	d := p.dev
	defer d.guard(&err)
	if err := d.enter(); err != nil {
		return err
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return &runtime.LaunchError{Err: err}
	}
	d.sweep()
	return p.run(p.list)
}

// run submits the list with the buffers of list, which is the same but for these.
func (p *prepared) run(list []runtime.Launch) error {
	d := p.dev
	if !p.ready(list) {
		return d.dispatchAll(list, false)
	}
	if p.borrows {
		defer p.cut.giveBack(d)
	}
	p.watch()
	t := p.takes.find(p.now)
	if p.takes.due(t) {
		p.record(t)
	}
	var s *sections
	if t.work == nil {
		s = p.divided()
		p.cut.put(p.now)
	}
	for i := range p.cut.parts {
		if err := p.submit(t, s, i); err != nil {
			return err
		}
	}
	d.stats.add(&p.cut.work, 1)
	d.stats.prepared.Add(p.cut.work.launches)
	return nil
}

// ready finds the memory of a list's buffers and makes dispatches that fit it. It returns false if
// a buffer was freed, or if there are no such dispatches.
func (p *prepared) ready(list []runtime.Launch) bool {
	var live bool
	if p.now, live = p.dev.memory.places(p.now[:0], list); !live || p.bad {
		return false
	}
	if p.cut == nil || !p.cut.fits(p.now) {
		p.drop()
		p.cuts++
		p.cut = p.dev.newCut(list, p.now)
		if p.bad = p.cut == nil; p.bad {
			return false
		}
	}
	if !p.cut.borrow(p.dev) {
		return false
	}
	for _, b := range p.cut.scratch {
		p.now = append(p.now, place{b.mem, b.bytes})
	}
	return true
}

// record records the list with the buffers of a take. A take that fails is refused.
func (p *prepared) record(t *take) {
	p.cut.put(t.at)
	for i := range p.cut.parts {
		x := &p.cut.parts[i]
		w, err := p.dev.gpu.(Recorder).Record(x.zero(), x.dispatches)
		if err != nil {
			p.dev.memory.relieve(err)
			t.drop()
			t.refused = true
			return
		}
		t.work = append(t.work, w)
	}
	p.dev.stats.recorded.Add(1)
}

// submit submits a part, recorded or not, and waits for it if an index may be out of range.
func (p *prepared) submit(t *take, s *sections, part int) error {
	d, x := p.dev, &p.cut.parts[part]
	rec := d.gpu.(Recorder)
	err := rec.Play(p.play(t, s, part))
	if errors.Is(err, ErrStale) { // it is recorded anew
		t.drop()
		p.undivide()
		p.cut.put(p.now)
		s = nil
		err = rec.Play(p.play(t, s, part))
	}
	if err != nil {
		d.memory.relieve(err) // as in send
		return d.deviceError(err)
	}
	d.stats.replayed.Add(p.replays)
	if len(x.slots) > 0 {
		return d.faultOf(x.faults, x.slots)
	}
	return d.relax()
}

// play is a part as work.
func (p *prepared) play(t *take, s *sections, part int) []Work {
	x := &p.cut.parts[part]
	p.plays, p.replays = p.plays[:0], 0
	switch {
	case t.work != nil:
		p.replays += int64(len(x.begins))
		return append(p.plays, Work{Rec: t.work[part]})
	case s == nil:
		return append(p.plays, x.whole())
	}
	for i := range s.parts[part] {
		c := &s.parts[part][i]
		w := p.section(x, c)
		if w.Rec != nil {
			p.replays += c.launches
		}
		p.plays = append(p.plays, w)
	}
	return p.plays
}

// Call never runs the list: each run can fail.
func (p *prepared) Call(int) bool { return false }

// Count does nothing: runs count themselves.
func (p *prepared) Count() {}

// Close releases what was recorded, and the memory that the dispatches use.
func (p *prepared) Close() { p.drop() }

// drop releases what was made for the dispatches, and forgets what is known of the buffers.
func (p *prepared) drop() {
	p.takes.drop()
	p.undivide()
	p.habits, p.need, p.refused = nil, firstCalm, false
	if p.cut != nil {
		p.cut.drop(p.dev)
		p.cut = nil
	}
}
