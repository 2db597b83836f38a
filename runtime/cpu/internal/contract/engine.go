package contract

import (
	"github.com/millrace-go/millrace/internal/machine"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime/cpu/internal/memory"
	"github.com/millrace-go/millrace/runtime/cpu/internal/threads"
)

// Engine runs contractions on a pool of threads. Runs must not overlap, except runs of one thread.
// It keeps its jobs and their memory for the next run, so that a run allocates nothing.
type Engine struct {
	pool   *threads.Pool
	mem    *memory.Pool // lends the memory of packed sides and tiles
	source Source

	code   [ir.NumDTypes]*functions // as returned by source
	jobs   threads.Spares[job]
	packed []*Packed
	shares shares
}

// NewEngine returns an engine. The memory pool may be shared with other engines.
func NewEngine(pool *threads.Pool, mem *memory.Pool, source Source) *Engine {
	return &Engine{pool: pool, mem: mem, source: source}
}

// Run runs a contraction, by machine code or C if possible.
func (e *Engine) Run(c *Contraction) {
	if e.inTiles(c) {
		return
	}
	c.lose()
	run := loops[c.DT]
	if soft := softLoops[c.DT]; c.Soft && soft != nil {
		run = soft
	}
	run(e, c)
}

// inTiles runs a contraction by machine code or C. It returns false if there are no functions for
// it, or no memory.
func (e *Engine) inTiles(c *Contraction) bool {
	if converters[c.DT] != nil && e.source != (Source{}) {
		c.lose()
		c = widened(c)
	}
	f := e.code[c.DT]
	if f == nil {
		var err error
		if f, err = e.source.functions(c.DT); err != nil {
			return false
		}
		e.code[c.DT] = f
	}
	c.code = f
	if f.code == nil {
		c.lose()
	}
	if !f.does(c.DT, c.Soft) {
		return false
	}
	j := e.jobs.Take()
	if j == nil {
		j = &job{e: e}
		j.packing, j.computing = j.pack, j.compute
	}
	defer j.done()
	j.c, j.f, j.mxcsr = c, f, machine.KeepMXCSR
	if c.Soft {
		j.mxcsr = machine.FlushMXCSR
	}
	return j.run()
}

// shares is a job of threads, made of a function.
type shares struct{ f func(begin, end int64) }

func (s *shares) Share(_ int, begin, end int64) { s.f(begin, end) }

// split runs f over shares of [0, total) of about grain units.
func (e *Engine) split(threads int, total, grain int64, f func(begin, end int64)) {
	e.shares.f = f
	e.pool.Split(threads, total, grain, &e.shares)
	e.shares.f = nil
}

// Packed is the memory in which side Y stays packed from one run to the next.
type Packed struct {
	memory.Scratch
	known []uint32
	full  bool // it contains the Y of the previous run
}

// Packed returns number n of the sides that stay packed.
func (e *Engine) Packed(n int) *Packed {
	for len(e.packed) <= n {
		e.packed = append(e.packed, new(Packed))
	}
	return e.packed[n]
}

// Unpack frees the memory of all sides that stayed packed.
func (e *Engine) Unpack() {
	for _, s := range e.packed {
		e.mem.Repay(&s.Scratch)
		s.full = false
	}
}

// Close frees all memory.
func (e *Engine) Close() {
	for j := e.jobs.Take(); j != nil; j = e.jobs.Take() {
		e.mem.Repay(&j.kept)
	}
	e.Unpack()
}
