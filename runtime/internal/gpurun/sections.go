package gpurun

import (
	"math/bits"
	"slices"
)

// A list whose buffers change from run to run is recorded in sections. A batch of a training step is
// in other memory each time, weights stay where they are, and results that cannot overwrite their
// operands alternate between two buffers. Dispatches that touch only buffers that were seen before are
// recorded; those in between are submitted anew by each run.

// section is a stretch of a part's dispatches.
type section struct {
	from, to int
	operands []int // those whose buffers it binds
	kept     bool  // it is recorded, once for each set of buffers
	takes    takes
	at       []place // the buffers of a run
	launches int64   // those of which it has all dispatches
}

// sections are all parts of a list in sections.
type sections struct {
	parts [][]section
	count int // of dispatches in those that are kept
	runs  int
}

// Limits of sections.
const (
	minSection = 2   // dispatches of a section that is recorded
	mostSeen   = 4   // buffers of an operand that are remembered
	firstCalm  = 2   // runs with remembered buffers before an operand may be part of a recorded section
	mostCalm   = 256 // the same, after recorded sections met new buffers many times
)

// habit is what is known of an operand's buffers.
type habit struct {
	seen []place // the most recently used first
	calm int     // runs since it had a buffer that was not among them
}

// watch notes the buffers of a run.
func (p *prepared) watch() {
	if len(p.habits) != len(p.now) {
		p.habits = make([]habit, len(p.now))
	}
	for i, at := range p.now {
		h := &p.habits[i]
		h.calm++
		k := slices.Index(h.seen, at)
		switch {
		case k == 0:
			continue
		case k > 0:
			h.seen = slices.Delete(h.seen, k, k+1)
		default:
			h.calm = 0
			if len(h.seen) == mostSeen {
				h.seen = h.seen[:mostSeen-1]
			}
		}
		h.seen = slices.Insert(h.seen, 0, at)
	}
}

// steady reports whether all buffers of a dispatch are known.
func (p *prepared) steady(from []int) bool {
	return !slices.ContainsFunc(from, func(operand int) bool { return operand >= 0 && p.habits[operand].calm < p.need })
}

// stretches calls f for the longest stretches of a part whose dispatches are all steady.
func (p *prepared) stretches(x *part, f func(from, to int)) {
	for i := 0; i < len(x.from); i++ {
		from := i
		for i < len(x.from) && p.steady(x.from[i]) {
			i++
		}
		if i-from >= minSection {
			f(from, i)
		}
	}
}

// divided returns the list in sections for the buffers of this run, or nil if nothing is to be
// recorded.
func (p *prepared) divided() *sections {
	if p.refused {
		return nil
	}
	if s := p.sections; s != nil {
		if p.surprised() {
			p.need = min(2*p.need, mostCalm)
			p.undivide()
		} else if s.runs++; bits.OnesCount(uint(s.runs)) > 1 { // it is seldom divided better
			return s
		}
	}
	n := 0
	for i := range p.cut.parts {
		p.stretches(&p.cut.parts[i], func(from, to int) { n += to - from })
	}
	if n > 0 && (p.sections == nil || n > p.sections.count) {
		p.divide(n)
	}
	return p.sections
}

// surprised reports that a recorded section meets a new buffer.
func (p *prepared) surprised() bool {
	for _, list := range p.sections.parts {
		for i := range list {
			c := &list[i]
			if c.kept && slices.ContainsFunc(c.operands, func(o int) bool { return p.habits[o].calm == 0 }) {
				return true
			}
		}
	}
	return false
}

// divide makes sections, of which count dispatches are recorded when their buffers come again.
func (p *prepared) divide(count int) {
	p.undivide()
	p.sections = &sections{count: count}
	for i := range p.cut.parts {
		x := &p.cut.parts[i]
		var list []section
		end := 0
		add := func(from, to int, kept bool) {
			if from < to {
				c := section{from: from, to: to, kept: kept, takes: takes{often: 1}, launches: x.launches(from, to)}
				for _, o := range slices.Concat(x.from[from:to]...) {
					if o >= 0 && !slices.Contains(c.operands, o) {
						c.operands = append(c.operands, o)
					}
				}
				list = append(list, c)
			}
			end = to
		}
		p.stretches(x, func(from, to int) {
			add(end, from, false)
			add(from, to, true)
		})
		add(end, len(x.dispatches), false)
		p.sections.parts = append(p.sections.parts, list)
	}
}

// section is a section of a part as work, recorded if its buffers came before.
func (p *prepared) section(x *part, c *section) Work {
	w := Work{List: x.dispatches[c.from:c.to]}
	if c.from == 0 {
		w.Zero = x.zero()
	}
	if !c.kept || p.refused {
		return w
	}
	c.at = c.at[:0]
	for _, o := range c.operands {
		c.at = append(c.at, p.now[o])
	}
	t := c.takes.find(c.at)
	if c.takes.due(t) {
		r, err := p.dev.gpu.(Recorder).Record(w.Zero, w.List)
		if err != nil {
			p.dev.memory.relieve(err)
			p.refused = true
			return w
		}
		t.work = append(t.work, r)
		p.dev.stats.recorded.Add(1)
	}
	if t.work == nil {
		return w
	}
	return Work{Rec: t.work[0]}
}

// launches counts the launches of which a stretch has all dispatches.
func (x *part) launches(from, to int) (n int64) {
	for i, begin := range x.begins {
		end := len(x.dispatches)
		if i+1 < len(x.begins) {
			end = x.begins[i+1]
		}
		if from <= begin && begin < end && end <= to {
			n++
		}
	}
	return n
}

// undivide releases the recorded sections.
func (p *prepared) undivide() {
	if p.sections == nil {
		return
	}
	for _, list := range p.sections.parts {
		for i := range list {
			list[i].takes.drop()
		}
	}
	p.sections = nil
}
