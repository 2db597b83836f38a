package stream

import (
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/millrace-go/millrace/internal/engine/device"
	"github.com/millrace-go/millrace/ir"
)

// Small blocks are watched only after other blocks followed. Dropped blocks are found
// nevertheless, including the last ones, and blocks with readers stay.
func TestRecentBlocksAreFound(t *testing.T) {
	e := open(t)
	func() {
		for range 200 {
			e.host(e.place(), ir.Shape{2}, 1, 2)
		}
	}()
	kept := e.host(e.place(), ir.Shape{2}, 3, 4)
	waitFor(t, e.d, "dropped", func(s device.Stats) bool { return s.LiveBytes == 8 })
	e.want(kept, 3, 4)
	Release(kept)
	func() { e.host(e.place(), ir.Shape{2}, 1, 2) }()
	e.d.mem.Reclaim(true) // one forced collection is enough
	if n := e.d.Stats().LiveBytes; n != 0 {
		t.Errorf("%d bytes live", n)
	}
}

// Blocks are released or dropped while other blocks push them from the list of recent blocks and
// collections empty this list. Each block is freed once.
func TestRecentBlocksOfMany(t *testing.T) {
	e := open(t)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			s := e.d.NewStream()
			var held [40]*Value
			for i := range 2000 {
				k := (i*7 + g) % len(held)
				if v := held[k]; v != nil && i%5 != 0 { // otherwise it is dropped
					e.want(v, float32(g), 2)
					Release(v)
				}
				held[k] = e.host(Place{S: s}, ir.Shape{2}, float32(g), 2)
				if i%400 == g {
					goruntime.GC()
				}
			}
			for _, v := range held {
				if v != nil {
					Release(v)
				}
			}
		})
	}
	all.Wait()
	waitFor(t, e.d, "in the end", func(s device.Stats) bool { return s.LiveBytes == 0 && s.PinnedBytes == 0 })
	if s := e.d.Stats().Runtime; s.AllocBytes != 0 {
		t.Errorf("the device has handed out %d bytes", s.AllocBytes)
	}
}
