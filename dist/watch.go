package dist

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// place is where a rank is in its program.
type place struct {
	call    uint64 // number of the last call that began
	name    string // its operation
	waiting bool   // it has not ended
	onFile  bool   // the rank reads or writes a file
	since   time.Time
}

func (p place) String() string {
	switch {
	case p.call == 0:
		return "before the first call"
	case p.onFile:
		return fmt.Sprintf("call %d, %s, reading or writing the file", p.call, p.name)
	case p.waiting:
		return fmt.Sprintf("call %d, %s", p.call, p.name)
	}
	return fmt.Sprintf("after call %d, %s", p.call, p.name)
}

// asked is a question to all ranks: where are you? It is put while an operation is pending for
// long, before the line of Warn and before the Deadline.
type asked struct {
	op      *op // that is waited for
	number  int // of the question
	stage   int // of this op: how many of the times in watch have passed
	answers map[int]place
}

// The answers of a rank: whether it is in a call.
const (
	outside = "outside"
	inside  = "inside"
	onFile  = "file"
)

// within is that answer.
func (p place) within() string {
	switch {
	case p.onFile:
		return onFile
	case p.waiting:
		return inside
	}
	return outside
}

func (a *asked) answer(from int, fields [][]byte) {
	n, err := strconv.Atoi(string(fields[0]))
	if err != nil || n != a.number || a.answers == nil {
		return
	}
	call, err1 := strconv.ParseUint(string(fields[1]), 10, 64)
	ago, err2 := strconv.ParseInt(string(fields[3]), 10, 64)
	if err1 == nil && err2 == nil {
		a.answers[from] = place{
			call: call, name: string(fields[4]), waiting: string(fields[2]) != outside, onFile: string(fields[2]) == onFile,
			since: time.Now().Add(-time.Duration(ago)),
		}
	}
}

// grace is how long answers may take.
func (o *Options) grace() time.Duration { return min(time.Second, o.Deadline/4) }

// watch looks at the clock: it asks the other ranks where they are, writes the line of Warn, and
// ends the World at the Deadline.
func (l *loop) watch(now time.Time) {
	if len(l.ops) == 0 {
		l.asked.op = nil
		return
	}
	o, a := l.ops[0], &l.asked
	if a.op != o {
		a.op, a.stage, a.answers = o, 0, nil
	}
	opt := &l.w.o
	grace := opt.grace()
	times := [...]time.Duration{opt.Warn, opt.Warn + grace, opt.Deadline - grace, opt.Deadline}
	if times[1] >= times[2] && a.stage < 2 {
		a.stage = 2 // too late for the line
	}
	if a.stage == len(times) || now.Sub(o.since) < times[a.stage] {
		return
	}
	a.stage++
	switch a.stage {
	case 1, 3:
		l.ask()
	case 2:
		opt.Log(l.w.late(a.answers))
	case 4:
		l.w.fail(l.w.verdict(a.answers))
	}
}

func (l *loop) ask() {
	l.asked.number++
	l.asked.answers = map[int]place{}
	for _, r := range l.w.others() {
		l.drv.Note(r, note(noteAsk, strconv.Itoa(l.asked.number))) // an error shows as no answer
	}
}

// late is the line that says which ranks have not come.
func (w *World) late(answers map[int]place) string {
	here := w.where()
	var b strings.Builder
	fmt.Fprintf(&b, "dist: rank %d has waited for %v in %v;", w.info.Rank, time.Since(here.since).Round(time.Millisecond), here)
	come := true
	for _, r := range w.others() {
		p, ok := answers[r]
		switch {
		case !ok:
			fmt.Fprintf(&b, " rank %d (%s) does not answer;", r, w.host(r))
		case p.onFile:
			fmt.Fprintf(&b, " rank %d (%s) is %s;", r, w.host(r), p.at())
		case p.before(here):
			fmt.Fprintf(&b, " rank %d (%s) has not come: it is %s;", r, w.host(r), p.at())
		default:
			continue
		}
		come = false
	}
	if come {
		b.WriteString(" all ranks have come, but not all bytes;")
	}
	return strings.TrimSuffix(b.String(), ";")
}

// before reports whether a rank has not come to the call of another.
func (p place) before(q place) bool { return p.call < q.call }

// at is a place with the time since.
func (p place) at() string {
	in := "in "
	if !p.waiting {
		in = ""
	}
	return fmt.Sprintf("%s%v, for %v", in, p, time.Since(p.since).Round(time.Millisecond))
}

// verdict names the rank for which others wait in vain: the first one that does not answer, else
// the one that is furthest behind.
func (w *World) verdict(answers map[int]place) error {
	here := w.where()
	for _, r := range w.others() {
		if _, ok := answers[r]; !ok {
			return &RankError{Rank: r, Host: w.host(r), State: NoAnswer, Call: here.String()}
		}
	}
	last, at := w.info.Rank, here
	for _, r := range w.others() {
		if p := answers[r]; last == w.info.Rank || p.before(at) || p.onFile && !at.before(here) {
			last, at = r, p
		}
	}
	call := at.at()
	switch {
	case at.onFile:
		call += "; the Deadline must be longer than that takes"
	case !at.before(here):
		call += ": it waits as others do, and bytes were lost"
	}
	return &RankError{Rank: last, Host: w.host(last), State: Behind, Call: call}
}
