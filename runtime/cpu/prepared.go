package cpu

import (
	"errors"
	goruntime "runtime"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/replay"
)

// prepared is a list of launches that was checked and ordered once, with its code. It runs in one
// of two ways. If all launches are small, they are one function: see sequence.go. Otherwise a crew
// runs them as it runs other lists, and small launches among them repeat recorded calls: see
// kept.go.
type prepared struct {
	d        *device
	sequence sequence // all launches as one function; if it is empty, the fields that follow are set
	own      []runtime.Launch
	list     readyList
	bytes    [][]int64        // least bytes of buffers, by launch and operand
	kept     []*replay.Launch // by launch, nil if it is walked
	way      runWay

	launches, read, written, fallbacks, grouped int64 // added to the counters by each run
	interpreted                                 []*program
	runs                                        int64 // not counted yet
}

var _ runtime.Preparer = (*device)(nil)

// Prepare prepares a list to be run many times. It returns nil for lists with chains, whose tiles
// are launches of their own, and if some code does not exist yet.
func (d *device) Prepare(list []runtime.Launch, own []runtime.Buffer) runtime.Prepared {
	if runtime.HasChains(list) || len(list) == 0 || d.enter() != nil {
		return nil
	}
	defer d.life.RUnlock()
	p := &prepared{d: d}
	if d.machine {
		var err error
		if p.sequence, err = p.newSequence(list, own); err == nil {
			return p
		}
		if !errors.Is(err, native.ErrNoSequence) {
			d.refuseSequence(err)
		}
		*p = prepared{d: d}
	}
	if p.prepare(list); len(p.list) == 0 {
		p.Close()
		return nil
	}
	return p
}

// prepare prepares the launches of a list. The list stays empty if that is not possible.
func (p *prepared) prepare(list []runtime.Launch) {
	p.bytes, p.kept = make([][]int64, len(list)), make([]*replay.Launch, len(list))
	for _, l := range list {
		l.Args, l.Scalars = append([]runtime.Access(nil), l.Args...), append([]uint64(nil), l.Scalars...)
		p.own = append(p.own, l)
	}
	p.way = p.d.wayOf(p.own, false)
	if p.list.prepare(p.d, p.own, &p.way, p.hold) != nil {
		p.list.drop()
	}
	p.way.inTurn.release()
	p.way.inTurn = nil
}

var errNotReady = errors.New("cpu: a launch that cannot be prepared, or not yet")

// hold finds the code of a launch, and what else is the same in all runs.
func (p *prepared) hold(r *ready) error {
	if !p.settle(r) {
		return errNotReady
	}
	at := r.index
	if p.bytes[at] = r.leastBytes(); p.bytes[at] == nil {
		return errNotReady
	}
	if nanos, _ := workOf(r.l); (r.threads == 1 || r.dot != nil) && (r.code != nil || r.plain()) && nanos <= keptWork {
		r.kept = replay.New(r.l)
		p.kept[at] = r.kept
	}
	p.add(r)
	if r.code == nil && !r.plain() {
		p.interpreted = append(p.interpreted, r.p)
	}
	if r.wave > 0 {
		p.grouped++
	}
	return nil
}

// settle finds the code of a launch; it returns false if the code does not exist yet.
func (p *prepared) settle(r *ready) bool {
	d := p.d
	if r.plain() || !d.runsCode(r) {
		return true
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if r.code = v.code.Load(); r.code != nil {
		return true
	}
	if !v.failed.Load() && (d.machine || d.comp != nil) {
		return false
	}
	if other, has := r.otherwise(); has {
		*r = other
	} else if v.failed.Load() {
		p.fallbacks++
	}
	return true
}

// add adds a launch to the counts of a run.
func (p *prepared) add(r *ready) {
	read, written := codegen.Traffic(r.p.kernel, r.l, &p.d.caps.ElemSize)
	p.launches, p.read, p.written = p.launches+1, p.read+read, p.written+written
}

// leastBytes returns the least size of the buffers of a launch's operands. It returns nil if a
// buffer is in Go's heap: such memory must be pinned for each run.
func (r *ready) leastBytes() []int64 {
	least := make([]int64, len(r.l.Args))
	for i := range r.l.Args {
		o := &r.p.kernel.Operands[i]
		if o.Kind == codegen.Index {
			continue
		}
		b := r.l.Args[i].Buf.(*memory.Buffer)
		if b.Shared() != nil {
			return nil
		}
		if r.p.lanewise[i] { // reads are checked element by element
			least[i] = b.Bytes()
			continue
		}
		_, hi := r.reach(i)
		least[i] = (hi + 1) * int64(o.DT.Size())
	}
	return least
}

// Set replaces the buffer at the given places.
func (p *prepared) Set(places []runtime.Place, b runtime.Buffer) bool {
	x, ok := b.(*memory.Buffer)
	if p.sequence.made() {
		return ok && p.sequence.set(places, x)
	}
	if !ok || x.Shared() != nil || x.Freed() {
		return false
	}
	for _, at := range places {
		if least := p.bytes[at.Launch]; least != nil && least[at.Arg] > x.Bytes() {
			return false
		}
	}
	for _, at := range places {
		p.own[at.Launch].Args[at.Arg].Buf = x
		if k := p.kept[at.Launch]; k != nil {
			k.Set(int(at.Arg), x)
		}
	}
	return true
}

// Run runs the list, as device.Run does.
func (p *prepared) Run() error {
	crowded, err := p.d.begin()
	if err != nil {
		return err
	}
	defer p.d.end()
	if !p.Call(1) {
		err = p.way.run(p.d.crewsFor(&p.way, crowded), p.list)
		p.runs++
	}
	p.Count()
	return err
}

// Call runs the list n times if it is one function.
func (p *prepared) Call(n int) bool {
	s := &p.sequence
	if !s.made() {
		return false
	}
	p.runs += int64(n)
	for n > 0 {
		some := min(n, s.most)
		*jit.Word(s.frame, native.FrameRows) = int64(some)
		s.code.Call(s.frame, s.mxcsr)
		n -= some
	}
	goruntime.KeepAlive(p)
	return true
}

// Count adds the runs to the device's counters.
func (p *prepared) Count() {
	c, n := &p.d.count, p.runs
	p.runs = 0
	c.launches.Add(n * p.launches)
	c.read.Add(n * p.read)
	c.written.Add(n * p.written)
	c.tier0.Add(n * int64(len(p.interpreted)))
	for _, q := range p.interpreted {
		q.interpreted.Add(n)
	}
	c.fallbacks.Add(n * p.fallbacks)
	c.grouped.Add(n * p.grouped)
	c.prepared.Add(n * p.launches)
}

// Close counts the last runs, and gives back what the list has borrowed.
func (p *prepared) Close() {
	p.Count()
	if p.sequence.made() {
		p.sequence.code.Free()
	}
	p.list.drop()
	for _, k := range p.kept {
		if k != nil {
			k.Close(&p.d.kept)
		}
	}
	p.kept = nil
}
