package exec

import (
	"slices"

	"github.com/millrace-go/millrace/internal/engine/memory"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/runtime"
)

// A run of a Fixed may be unable to write a result over the old value that it replaces: a later
// launch reads the old value, or needs it if an index is out of range. The result then has memory
// of its own. Copying it back costs as much as reading and writing a weight. Instead the result
// and its destination exchange their blocks after each run.

// exchangeBytes is the least size of a result that is exchanged. Copying a smaller one costs less
// than to put other buffers into the launches, and a list that is one call can do it.
const exchangeBytes = 16<<10 + 1

// exchange lists blocks that change places after each run. The first ones are the destinations of
// results; the others are spare ones.
type exchange struct {
	blocks []*memory.Block
	next   []int // after a run, place i gets the block from place next[i]
	sinks  int   // number of destinations
	slots  []exchangedSlot
	room   []*memory.Block
}

// exchangedSlot is a slot of the list that uses the block at a place.
type exchangedSlot struct{ slot, place int }

// exchange finds the results whose memory is exchanged and removes their sinks.
func (f *Fixed) exchange() {
	var list []*Sink
	least := testhook.Exchange(exchangeBytes)
	for i := range f.sinks {
		s := &f.sinks[i]
		if s.Moves && s.Result >= 0 && s.From.Block != s.To && s.From.View == nil && s.To.Bytes >= least && s.From.Bytes == s.To.Bytes &&
			!slices.Contains(f.b.still, s.To) && !slices.ContainsFunc(list, func(x *Sink) bool { return x.From.Block == s.From.Block }) {
			list = append(list, s)
		}
	}
	for n := -1; n != len(list); { // the memory is the Fixed's own, or that of another such result
		n = len(list)
		list = slices.DeleteFunc(list, func(s *Sink) bool {
			return !slices.Contains(f.own, s.From.Block) && !slices.ContainsFunc(list, func(x *Sink) bool { return x.To == s.From.Block })
		})
	}
	x := &f.moves
	x.sinks = len(list)
	for _, s := range list {
		x.blocks = append(x.blocks, s.To)
	}
	for _, s := range list {
		at := slices.Index(x.blocks, s.From.Block)
		if at < 0 {
			at = len(x.blocks)
			x.blocks = append(x.blocks, s.From.Block)
		}
		x.next = append(x.next, at)
		s.To.MadeBy(s.From.By, s.From.ID)
	}
	for spare := x.sinks; spare < len(x.blocks); spare++ {
		end := spare // a spare place gets the block that no destination takes
		for at := slices.Index(x.next[:x.sinks], end); at >= 0; at = slices.Index(x.next[:x.sinks], end) {
			end = at
		}
		x.next = append(x.next, end)
	}
	for slot, blk := range f.blocks {
		if place := slices.Index(x.blocks, blk); place >= 0 {
			x.slots = append(x.slots, exchangedSlot{slot, place})
		}
	}
	for _, blk := range f.Spares() { // these values are needed after a run
		f.own = slices.DeleteFunc(f.own, func(o *memory.Block) bool { return o == blk })
		f.b.nobodys = slices.DeleteFunc(f.b.nobodys, func(o runtime.Buffer) bool { return o == blk.Buf })
	}
	f.sinks = slices.DeleteFunc(f.sinks, func(s Sink) bool { return slices.Contains(x.blocks[:x.sinks], s.To) })
}

// turn exchanges the blocks after a run.
func (f *Fixed) turn() {
	x := &f.moves
	if len(x.blocks) == 0 {
		return
	}
	x.room = append(x.room[:0], x.blocks...)
	for i, from := range x.next {
		x.blocks[i] = x.room[from]
	}
	for _, at := range x.slots {
		f.blocks[at.slot] = x.blocks[at.place]
	}
}

// Moved returns the blocks of the results whose memory is exchanged, in the order of their sinks.
// They change with each run.
func (f *Fixed) Moved() []*memory.Block { return f.moves.blocks[:f.moves.sinks] }

// Spares returns the blocks that will be exchanged for those of Moved.
func (f *Fixed) Spares() []*memory.Block { return f.moves.blocks[f.moves.sinks:] }
