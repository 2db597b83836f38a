package cpu

import (
	"fmt"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/runtime"
)

// prepared is a list of launches that was checked and ordered once, with its code, for the runtime
// in Go.
type prepared struct {
	d       *device
	own     []runtime.Launch
	readied []ready
	bytes   [][]int64     // least bytes of buffers, by launch and operand
	kept    []*keptLaunch // by launch, nil if it is walked
	work    int64         // as in forOne
	worth   bool
	waves   bool // some launches run at the same time

	launches, read, written, shipped, fallbacks, grouped int64 // added to the counters by each run
	interpreted                                          []*program
}

// prepareList prepares a list for the runtime in Go. It returns nil for lists with chains, whose
// tiles are launches of their own, and if some code does not exist yet.
func (d *device) prepareList(list []runtime.Launch) runtime.Prepared {
	p := &prepared{d: d, bytes: make([][]int64, len(list)), kept: make([]*keptLaunch, len(list)), own: make([]runtime.Launch, len(list))}
	for i := range list {
		nanos, several := workOf(&list[i])
		p.work += nanos
		p.worth = p.worth || several
	}
	inTurn := order(list, d.threadsOf())
	defer inTurn.release()
	p.waves = inTurn != nil
	threads := int64(1)
	if p.worth || p.waves || p.work > turnWork {
		threads = d.threadsOf()
	}
	for k := range list {
		t, n := turn{at: k}, threads
		if inTurn != nil {
			if t = inTurn.turns[k]; t.wave > 0 {
				n = 1
			}
		}
		l := &p.own[t.at]
		*l = list[t.at]
		l.Args, l.Scalars = append([]runtime.Access(nil), l.Args...), append([]uint64(nil), l.Scalars...)
		r, err := d.order(l, n)
		if err != nil || !r.empty && !p.settle(&r) {
			p.Close()
			return nil
		}
		if p.bytes[t.at] = make([]int64, len(l.Args)); r.empty {
			continue
		}
		if !r.leastBytes(p.bytes[t.at]) {
			p.Close()
			return nil
		}
		r.index, r.wave = t.at, t.wave
		if nanos, _ := workOf(l); (r.threads == 1 || r.dot != nil) && (r.code != nil || r.plain()) && nanos <= keptWork {
			r.kept = newKept(&r)
			p.kept[t.at] = r.kept
		}
		p.count(&r)
		p.readied = append(p.readied, r)
	}
	if len(p.readied) == 0 {
		return nil
	}
	return p
}

// settle finds the code of a launch; it returns false if the code does not exist yet.
func (p *prepared) settle(r *ready) bool {
	d := p.d
	if r.plain() || !d.runsCode(r) {
		return true
	}
	key := r.classKey()
	v := r.sched.variantFor(&key)
	if r.code = r.codeOf(v); r.code != nil {
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

// count adds a launch to the counts of a run.
func (p *prepared) count(r *ready) {
	read, written := codegen.Traffic(r.p.kernel, r.l, &p.d.caps.ElemSize)
	p.launches, p.read, p.written = p.launches+1, p.read+read, p.written+written
	switch {
	case r.code != nil && r.code.shipped != nil:
		p.shipped++
	case r.code == nil && !r.plain():
		p.interpreted = append(p.interpreted, r.p)
	}
	if r.wave > 0 {
		p.grouped++
	}
}

// leastBytes computes the least size of the buffers of a launch's operands. It returns false if a
// buffer is in Go's heap: such memory must be pinned for each run.
func (r *ready) leastBytes(to []int64) bool {
	for i := range r.l.Args {
		o := &r.p.kernel.Operands[i]
		if o.Kind == codegen.Index {
			continue
		}
		b := r.l.Args[i].Buf.(*buffer)
		if b.shared != nil {
			return false
		}
		if r.p.lanewise[i] { // reads are checked element by element
			to[i] = b.bytes
			continue
		}
		_, hi := reach(&r.l.Args[i], r.l.Dims[:r.l.Rank])
		if r.p.scatter.row(i) {
			_, hi = rowReach(&r.l.Args[i], r.l.Dims[:r.l.Kept])
		}
		to[i] = (hi + 1) * int64(o.DT.Size())
	}
	return true
}

// Set replaces the buffer at the given places.
func (p *prepared) Set(places []runtime.Place, b runtime.Buffer) bool {
	x, ok := b.(*buffer)
	if !ok || x.shared != nil || x.freed {
		return false
	}
	for _, at := range places {
		if p.bytes[at.Launch][at.Arg] > x.bytes {
			return false
		}
	}
	for _, at := range places {
		p.own[at.Launch].Args[at.Arg].Buf = x
		if k := p.kept[at.Launch]; k != nil {
			k.base[baseArgs+at.Arg] = x.p
		}
	}
	return true
}

// Run runs the list, as device.Run does.
func (p *prepared) Run() (done bool, err error) {
	d := p.d
	if err := d.enter(); err != nil {
		return true, err
	}
	defer d.life.RUnlock()
	if err := fault.Hit(fault.Launch); err != nil {
		return true, &runtime.LaunchError{Err: fmt.Errorf("cpu: %w", err)}
	}
	crowded := d.crowd.enter()
	defer d.crowd.leave()
	crews := d.wide
	if one := alone(p.work, p.worth, crowded); one && (crowded || !p.waves) {
		crews = d.alone // waves are run one launch after another
	} else {
		crews.rouse()
	}
	w := crews.lend()
	if p.work < turnWork {
		err = w.exec.run(p.readied)
	} else {
		err = crews.run(&w, p.readied)
	}
	crews.giveBack(w)
	c := &d.count
	c.launches.Add(p.launches)
	c.read.Add(p.read)
	c.written.Add(p.written)
	c.tier0.Add(int64(len(p.interpreted)))
	for _, q := range p.interpreted {
		q.interpreted.Add(1)
	}
	c.shipped.Add(p.shipped)
	c.fallbacks.Add(p.fallbacks)
	c.grouped.Add(p.grouped)
	c.prepared.Add(p.launches)
	return true, err
}

// Close returns the borrowed parts of the list.
func (p *prepared) Close() {
	for i := range p.readied {
		if o := p.readied[i].dot; o != nil {
			dotOrders.Put(o)
		}
	}
	for _, k := range p.kept {
		if k != nil {
			k.close(&p.d.kept)
		}
	}
	p.readied, p.kept = nil, nil
}
