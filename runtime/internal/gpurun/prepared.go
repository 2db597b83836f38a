package gpurun

import (
	"errors"
	"slices"

	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// maxTakes bounds the sets of buffers that a list remembers.
const maxTakes = 8

// prepared is a list of launches that was cut into dispatches once. A run puts the buffers of the run
// into the dispatches and submits them. Buffers that come for the second time get a recording, which
// later runs with them submit: results that alternate between two buffers have two recordings. The
// buffers are compared before each run.
type prepared struct {
	dev     *Runner
	list    []runtime.Launch // with arguments of its own
	cut     *cutList         // nil if there is none
	refused bool             // the list cannot be cut
	takes   []*take          // the most recently used first
	now     []place          // the buffers of a run
}

// take is a set of buffers of the list.
type take struct {
	at      []place
	refused bool        // it cannot be recorded
	work    []Recording // by part; none before it is recorded
}

// place is the memory of an operand.
type place struct {
	mem   Buffer
	bytes int64
}

var _ runtime.Preparer = (*Runner)(nil)

// Prepare cuts a list into dispatches. It returns nil if the Device has no recordings, or if
// something fails: Run then has the same error.
func (d *Runner) Prepare(list []runtime.Launch, _ []runtime.Buffer) runtime.Prepared {
	if _, ok := d.gpu.(Recorder); !ok || len(list) == 0 || d.enter() != nil {
		return nil
	}
	p := &prepared{dev: d, list: slices.Clone(list)}
	for i := range p.list {
		p.list[i].Args, p.list[i].Scalars = slices.Clone(list[i].Args), slices.Clone(list[i].Scalars)
	}
	if !p.ready() {
		p.Close()
		return nil
	}
	p.find()
	return p
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
	if !p.ready() {
		return d.dispatchAll(p.list, false)
	}
	d.sweep()
	t, known := p.find()
	if known && t.work == nil && !t.refused {
		p.record(t)
	}
	if t.work == nil {
		p.cut.put(p.now)
	}
	for i := range p.cut.parts {
		if err := p.run(t, i); err != nil {
			return err
		}
	}
	d.stats.add(&p.cut.work, 1)
	d.stats.prepared.Add(p.cut.work.launches)
	return nil
}

// ready finds the memory of the list's buffers and makes dispatches that fit it. It returns false if
// a buffer was freed, or if there are no such dispatches.
func (p *prepared) ready() bool {
	var live bool
	if p.now, live = p.dev.memory.places(p.now[:0], p.list); !live || p.refused {
		return false
	}
	if p.cut != nil && p.cut.fits(p.now) {
		return true
	}
	p.drop()
	p.cut = p.dev.newCut(p.list, p.now)
	p.refused = p.cut == nil
	return !p.refused
}

// find returns the take of the run's buffers, and whether there was one before.
func (p *prepared) find() (t *take, known bool) {
	at := slices.IndexFunc(p.takes, func(t *take) bool { return slices.Equal(t.at, p.now) })
	if at == 0 {
		return p.takes[0], true
	}
	if known = at > 0; known {
		t = p.takes[at]
		p.takes = slices.Delete(p.takes, at, at+1)
	} else {
		t = &take{at: slices.Clone(p.now)}
		if n := len(p.takes); n == maxTakes {
			p.takes[n-1].drop()
			p.takes = p.takes[:n-1]
		}
	}
	p.takes = slices.Insert(p.takes, 0, t)
	return t, known
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

// run submits a part, recorded or not, and waits for it if an index may be out of range.
func (p *prepared) run(t *take, part int) error {
	d, x := p.dev, &p.cut.parts[part]
	var err error
	if t.work != nil {
		if err = t.work[part].Submit(); errors.Is(err, ErrStale) { // it is recorded anew
			t.drop()
			p.cut.put(t.at)
		}
	}
	if t.work == nil {
		err = d.submitPart(x)
	}
	if err != nil {
		d.memory.relieve(err) // as in send
		return d.deviceError(err)
	}
	if len(x.slots) > 0 {
		return d.faultOf(x.faults, x.slots)
	}
	return d.relax()
}

func (t *take) drop() {
	for _, w := range t.work {
		w.Release()
	}
	t.work = nil
}

// Call never runs the list: each run can fail.
func (p *prepared) Call(int) bool { return false }

// Count does nothing: runs count themselves.
func (p *prepared) Count() {}

// Close releases what was recorded, and the memory that the dispatches use.
func (p *prepared) Close() { p.drop() }

func (p *prepared) drop() {
	for _, t := range p.takes {
		t.drop()
	}
	p.takes = nil
	if p.cut != nil {
		p.cut.drop(p.dev)
		p.cut = nil
	}
}
