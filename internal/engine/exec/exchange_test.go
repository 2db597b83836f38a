package exec

import (
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/internal/engine/memory"
)

// TestExchange checks which blocks the destinations of results get after each run. Lower-case
// letters are the Fixed's own blocks.
func TestExchange(t *testing.T) {
	for name, c := range map[string]struct {
		blocks string   // by slot
		sinks  []string // destination and source
		fixed  string   // destinations that keep their memory although a run could move them
		moved  []string // after each run
		after  string   // by slot, after one run
	}{
		"own memory":        {"Ax", []string{"Ax"}, "", []string{"x", "A", "x"}, "xA"},
		"in place":          {"AA", []string{"AA"}, "", []string{""}, "AA"},
		"of another result": {"ABCBx", []string{"AB", "Bx", "CC"}, "", []string{"Bx", "xA", "AB"}, "BxCxA"},
		"a cycle":           {"ABBA", []string{"AB", "BA"}, "", []string{"BA", "AB"}, "BAAB"},
		"two of one result": {"ABx", []string{"Ax", "Bx"}, "", []string{"x", "A"}, "xBA"},
		"one that stays":    {"ABBx", []string{"AB", "Bx"}, "B", []string{""}, "ABBx"},
		"an argument":       {"ABC", []string{"AC"}, "", []string{""}, "ABC"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &memory.Pool{Base: new(device.Base)}
			known := map[rune]*memory.Block{}
			block := func(r rune) *memory.Block {
				if known[r] == nil {
					known[r] = &memory.Block{Mem: pool, Bytes: exchangeBytes}
					known[r].Dense.Block = known[r]
				}
				return known[r]
			}
			names := func(list []*memory.Block) (s string) {
				for _, b := range list {
					for r, blk := range known {
						if b == blk {
							s += string(r)
						}
					}
				}
				return s
			}
			f := &Fixed{run: run{b: new(Bound)}}
			for _, r := range c.blocks {
				if f.blocks = append(f.blocks, block(r)); r >= 'a' {
					f.own = append(f.own, block(r))
				}
			}
			for i, s := range c.sinks {
				f.sinks = append(f.sinks, Sink{Result: i, To: block(rune(s[0])), From: &block(rune(s[1])).Dense, Moves: !slices.Contains([]rune(c.fixed), rune(s[0]))})
			}
			f.exchange()
			if got := len(f.sinks) + len(f.Moved()); got != len(c.sinks) {
				t.Errorf("%d sinks are left or moved, of %d", got, len(c.sinks))
			}
			for i, want := range c.moved {
				f.turn()
				if got := names(f.Moved()); got != want {
					t.Errorf("run %d: the destinations have %q, want %q", i, got, want)
				}
				if got := names(f.blocks); i == 0 && got != c.after {
					t.Errorf("the slots have %q, want %q", got, c.after)
				}
			}
		})
	}
}
