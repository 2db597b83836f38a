package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/millrace-go/millrace/bench/peers/internal/talk"
	"github.com/millrace-go/millrace/internal/statusline"
)

// A bench times workloads.
type bench struct {
	contestants []contestant // those that are installed
	threads     int
	rounds      int
	warmUps     int           // rounds before those that count
	limit       time.Duration // for an answer
	shape       shape         // of the large tensor
	work        string        // a folder for inputs and results
	status      *statusline.Line
	quit        <-chan struct{}

	running map[string]*process // by contestant: each goes on to the next workload
}

// player is a contestant in a workload.
type player struct {
	*process
	entry *Entry
}

// time has all contestants compute a workload in turns.
func (b *bench) time(w workload) (*Result, error) {
	r := &Result{Name: w.name, About: w.about, Bound: w.bound, Runs: w.runs, Tolerance: w.tolerance, Floor: w.floor}
	task := &talk.Work{Workload: w.name, DType: "float32", Threads: b.threads}
	inputs := w.inputs(b.shape)
	for i := range inputs {
		in := &inputs[i]
		in.fill(uint64(i))
		file := filepath.Join(b.work, fmt.Sprintf("%s-%d.f32", w.name, i))
		defer os.Remove(file)
		if err := talk.WriteFloats(file, in.data); err != nil {
			return nil, err
		}
		r.Shapes = append(r.Shapes, in.shape)
		task.Inputs = append(task.Inputs, talk.Input{Name: in.name, File: file, Shape: in.shape})
	}
	want := w.oracle(inputs)
	players := b.ready(r, task)
	for round := range b.warmUps + b.rounds {
		for _, i := range order(round, len(players)) {
			if p := players[i]; !p.entry.bad() {
				b.status.Say("%s, round %d of %d: %s", w.name, max(round-b.warmUps+1, 0), b.rounds, p.entry.Contestant)
				b.sample(p, w.runs, round >= b.warmUps)
			}
		}
	}
	for _, p := range players {
		if !p.entry.bad() {
			b.check(p, w, want)
		}
	}
	b.status.Clear()
	return r, b.interrupted()
}

// order is the turn of n contestants in a round: nobody always runs after the same
// one, nor always before it.
func order(round, n int) []int {
	turn := make([]int, n)
	for i := range turn {
		turn[i] = (i + round) % n
	}
	if round/2%2 == 1 {
		slices.Reverse(turn)
	}
	return turn
}

// ready starts the contestants that have the workload, one after another.
func (b *bench) ready(r *Result, task *talk.Work) []*player {
	var players []*player
	for _, c := range b.contestants {
		e := &Entry{Contestant: c.name, Status: ok}
		r.Entries = append(r.Entries, e)
		b.status.Say("%s: %s makes ready", task.Workload, c.name)
		p, err := b.process(c)
		if err != nil {
			e.Status, e.Why = failed, err.Error()
			continue
		}
		a, err := p.ask(talk.Question{Work: task}, b.limit)
		switch {
		case err == nil && a.Ready:
			players = append(players, &player{p, e})
			continue
		case err == nil && a.Unsupported != "":
			e.Status, e.Why = unsupported, a.Unsupported
		case err == nil:
			e.Status, e.Why = failed, p.fail("did not say that it is ready", 0).Error()
		default:
			e.Status, e.Why = failed, err.Error()
		}
	}
	return players
}

// process is a contestant's, a new one where there is none or it came to an end.
func (b *bench) process(c contestant) (*process, error) {
	if p := b.running[c.name]; p != nil && !p.gone {
		return p, nil
	}
	p, err := c.start(b.quit)
	if err == nil {
		if b.running == nil {
			b.running = map[string]*process{}
		}
		b.running[c.name] = p
	}
	return p, err
}

// close ends what still runs.
func (b *bench) close() {
	for _, p := range b.running {
		if !p.gone {
			p.stop(stopPatience)
		}
	}
}

// sample takes one, which counts or not.
func (b *bench) sample(p *player, runs int, counts bool) {
	a, err := p.ask(talk.Question{Run: runs}, b.limit)
	if err == nil && !(a.Seconds > 0) {
		err = p.fail("gave no time", 0)
	}
	switch {
	case err != nil:
		p.entry.Status, p.entry.Why, p.entry.Seconds = failed, err.Error(), nil
	case counts:
		p.entry.Seconds = append(p.entry.Seconds, a.Seconds)
	}
}

// check compares the result of the last timed run with the oracle.
func (b *bench) check(p *player, w workload, want expected) {
	file := filepath.Join(b.work, "result.f32")
	defer os.Remove(file)
	a, err := p.ask(talk.Question{Write: file}, b.limit)
	if err != nil {
		p.entry.Status, p.entry.Why, p.entry.Seconds = failed, err.Error(), nil
		return
	}
	got, err := talk.ReadFloats(file)
	if err == nil && (a.Wrote != want.size || len(got) != want.size) {
		err = fmt.Errorf("%d elements and a file of %d instead of %d", a.Wrote, len(got), want.size)
	}
	if err != nil {
		p.entry.Status, p.entry.Why, p.entry.Seconds = failed, p.fail(err.Error(), 0).Error(), nil
		return
	}
	off := want.furthest(got, w.floor)
	if off <= w.tolerance {
		p.entry.Error = off
		return
	}
	p.entry.Status, p.entry.Seconds = disagrees, nil
	p.entry.Why = fmt.Sprintf("off by %.2g, allowed %.2g", off, w.tolerance)
}

func (b *bench) interrupted() error {
	select {
	case <-b.quit:
		return errors.New("interrupted")
	default:
		return nil
	}
}
