package main

import (
	"fmt"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Expansions have no loops: a long division is its step, repeated 191 times. The printer finds such
// repetitions, and prints a loop.

// loopWorth is the least number of instructions that a loop must save.
const loopWorth = 150

// loop is a repetition in the steps of a program. The second pass over the body is its pattern: it
// reads values of the same pass, values of the pass before, and values from before the loop.
type loop struct {
	start, period, times int             // in steps
	before, body         []int           // instructions of the first pass, and of the second one
	initial              map[int]ir.Ref  // by position in the body: the value before the first pass, of those that the next pass reads
	last                 map[ir.Ref]int  // results of the last pass → position in the body
	rising               map[[2]int]bool // operands of the body that are constants and rise by one in each pass
}

// stepsOf returns the instructions that compute something.
func stepsOf(prog *ir.Prog) []int {
	var steps []int
	for i, in := range prog.Code {
		if in.Op != ir.Param && in.Op != ir.Const {
			steps = append(steps, i)
		}
	}
	return steps
}

// findLoop returns the repetition that saves most, or nil.
func findLoop(prog *ir.Prog, steps []int) *loop {
	var best *loop
	saved := loopWorth - 1
	f := loopFinder{prog: prog, steps: steps, at: map[ir.Ref]int{}}
	for k, i := range steps {
		f.at[ir.Ref(i)] = k
	}
	for period := 2; period <= 24; period++ {
		for start := 0; start+3*period <= len(steps); start++ {
			l := f.try(start, period)
			if l != nil && (l.times-1)*period > saved {
				best, saved = l, (l.times-1)*period
			}
		}
	}
	return best
}

type loopFinder struct {
	prog  *ir.Prog
	steps []int
	at    map[ir.Ref]int // position in steps
}

// try returns the longest loop with this start and period.
func (f *loopFinder) try(start, period int) *loop {
	l := &loop{start: start, period: period, times: 1, initial: map[int]ir.Ref{}, last: map[ir.Ref]int{}, rising: map[[2]int]bool{}}
	l.before, l.body = f.steps[start:start+period], f.steps[start+period:start+2*period]
	if !f.first(l) || !f.oneType(l) {
		return nil
	}
	for l.times = 2; start+(l.times+1)*period <= len(f.steps) && f.pass(l, l.times); l.times++ {
	}
	if l.times < 3 || !f.closed(l) {
		return nil
	}
	return l
}

func (f *loopFinder) same(i, k int) bool {
	x, y := f.prog.Code[i], f.prog.Code[k]
	return x.Op == y.Op && x.DT == y.DT && x.Imm == y.Imm && len(used(x)) == len(used(y)) && x.Op != ir.Rare
}

// first compares the first pass with the pattern. Where the pattern reads the pass before it, the
// first one reads an initial value.
func (f *loopFinder) first(l *loop) bool {
	for j, i := range l.body {
		before := l.before[j]
		if !f.same(before, i) {
			return false
		}
		was := used(f.prog.Code[before])
		for n, a := range used(f.prog.Code[i]) {
			at, step := f.at[a]
			switch {
			case step && at >= l.start+l.period:
				if p, ok := f.at[was[n]]; !ok || p != at-l.period {
					return false
				}
			case step && at >= l.start:
				if p, ok := f.at[was[n]]; ok && p >= l.start {
					return false
				}
				if v, ok := l.initial[at-l.start]; ok && v != was[n] {
					return false
				}
				l.initial[at-l.start] = was[n]
			case f.rises(was[n], a, 1):
				l.rising[[2]int{j, n}] = true
			case was[n] != a:
				return false
			}
		}
	}
	return true
}

// oneType reports that all rising constants have one dtype: a loop has one counter.
func (f *loopFinder) oneType(l *loop) bool {
	dt := ir.Invalid
	for p := range l.rising {
		is := f.prog.Code[f.prog.Code[l.body[p[0]]].Args[p[1]]].DT
		if dt != ir.Invalid && dt != is {
			return false
		}
		dt = is
	}
	return true
}

// rises reports that constant b is a plus by.
func (f *loopFinder) rises(a, b ir.Ref, by uint64) bool {
	x, y := f.prog.Code[a], f.prog.Code[b]
	return x.Op == ir.Const && y.Op == ir.Const && x.DT == y.DT && x.DT.IsInt() && x.Imm+by == y.Imm
}

// pass compares pass k with the pattern.
func (f *loopFinder) pass(l *loop, k int) bool {
	for j, i := range l.body {
		now := f.steps[l.start+k*l.period+j]
		if !f.same(now, i) {
			return false
		}
		is := used(f.prog.Code[now])
		for n, a := range used(f.prog.Code[i]) {
			at, step := f.at[a]
			switch {
			case step && at >= l.start:
				if p, ok := f.at[is[n]]; !ok || p != at+(k-1)*l.period {
					return false
				}
			case l.rising[[2]int{j, n}]:
				if !f.rises(a, is[n], uint64(k-1)) {
					return false
				}
			case is[n] != a:
				return false
			}
		}
	}
	return true
}

// closed reports that code behind the loop reads only values that the last pass passes on.
func (f *loopFinder) closed(l *loop) bool {
	end, last := l.start+l.times*l.period, l.start+(l.times-1)*l.period
	ok := func(a ir.Ref) bool {
		at, step := f.at[a]
		if !step || at < l.start || at >= end {
			return true
		}
		_, passed := l.initial[at-last]
		if passed {
			l.last[a] = at - last
		}
		return at >= last && passed
	}
	for _, i := range f.steps[end:] {
		for _, a := range used(f.prog.Code[i]) {
			if !ok(a) {
				return false
			}
		}
	}
	return ok(f.prog.Results[0])
}

// loop prints a loop.
func (b *goBody) loop(l *loop) error {
	var vars, values []string
	var at []int
	for j := range l.period {
		if v, ok := l.initial[j]; ok {
			vars, values, at = append(vars, fmt.Sprintf("c%d", j)), append(values, b.names[v]), append(at, j)
		}
	}
	fmt.Fprintf(&b.text, "\t\t\t%s := %s\n", strings.Join(vars, ", "), strings.Join(values, ", "))
	head, rising := fmt.Sprintf("range %d", l.times), map[[2]int]string{}
	for p := range l.rising {
		a := b.prog.Code[l.body[p[0]]].Args[p[1]]
		dt, first := b.prog.Code[a].DT, b.prog.Code[a].Imm-1
		head = fmt.Sprintf("k := range %s(%d)", goType(dt), l.times)
		if rising[p] = "k"; first != 0 {
			rising[p] = "(k + " + goLiteral(dt, first) + ")"
		}
	}
	fmt.Fprintf(&b.text, "\t\t\tfor %s {\n", head)
	uses := map[int]int{}
	for _, i := range l.body {
		for _, a := range used(b.prog.Code[i]) {
			uses[int(a)] += mentions(b.prog.Code[i])
		}
	}
	for j, c := range at {
		b.names[l.before[c]] = vars[j]
		uses[l.body[c]]++
	}
	for j, i := range l.body {
		args := b.args(i)
		for n := range args {
			if k, ok := rising[[2]int{j, n}]; ok {
				args[n] = k
			}
		}
		b.uses[i] = uses[i]
		if err := b.step(i, args); err != nil {
			return err
		}
	}
	for j, c := range at {
		values[j] = b.names[l.body[c]]
	}
	fmt.Fprintf(&b.text, "\t\t\t%s = %s\n\t\t\t}\n", strings.Join(vars, ", "), strings.Join(values, ", "))
	for a, c := range l.last {
		b.names[a] = fmt.Sprintf("c%d", c)
	}
	return nil
}
