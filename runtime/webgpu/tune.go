//go:build cgo && ((linux && !android && amd64) || darwin || (windows && amd64))

package webgpu

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/force"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Ways to run a launch that tuning may choose from. A choice is the number of one
// of turns, plus 1, and of more that go together in the next bytes; it holds for
// all dispatches that the launch is cut into and that it makes sense for.

// turn changes a shader that choose made.
type turn struct {
	name   string
	scalar bool                  // one point per step
	mode   []wgsl.Mode           // of the shaders that it changes
	change func(v *wgsl.Variant) // nil: nothing more
}

// turns are in the order of their codes, which is that of files: new ones are
// added behind.
var turns = []turn{
	{"group=32", false, single, grouped(32)},
	{"group=128", false, single, grouped(128)},
	{"group=256", false, single, grouped(256)},
	{"lanes=1", true, []wgsl.Mode{wgsl.Map, wgsl.Rows, wgsl.Cols}, nil},
	{"tile=32x32/4x4", false, tiles, tiled(wgsl.Tile{M: 32, N: 32, K: 16, RowsPer: 4, ColsPer: 4})},
	{"tile=64x64/4x4", false, tiles, tiled(wgsl.Tile{M: 64, N: 64, K: 16, RowsPer: 4, ColsPer: 4})},
	{"tile=64x64/8x8", false, tiles, tiled(wgsl.Tile{M: 64, N: 64, K: 16, RowsPer: 8, ColsPer: 8})},
	{"tile=128x128/16x16", false, tiles, tiled(wgsl.Tile{M: 128, N: 128, K: 8, RowsPer: 16, ColsPer: 16, Looped: true})},
}

var (
	single = []wgsl.Mode{wgsl.Map, wgsl.Cols} // whose invocations have nothing in common
	tiles  = []wgsl.Mode{wgsl.Tiles}
)

func grouped(n int) func(*wgsl.Variant) {
	return func(v *wgsl.Variant) { v.Group = n }
}

// tiled changes the sizes of a tile. What follows from how the operands lie
// stays.
func tiled(t wgsl.Tile) func(*wgsl.Variant) {
	return func(v *wgsl.Variant) {
		t.MDims, t.NDims, t.AlongA, t.AlongB = v.Tile.MDims, v.Tile.NDims, v.Tile.AlongA, v.Tile.AlongB
		v.Tile, v.Group = t, t.Group()
	}
}

func (t *turn) changes(m wgsl.Mode) bool {
	for _, x := range t.mode {
		if x == m {
			return true
		}
	}
	return false
}

// chosen is the variant that runs a piece by its launch's choice.
func (p *program) chosen(pc *piece) (wgsl.Variant, error) {
	code := pc.launch.Choice
	if code == 0 {
		return choose(p.ready, pc, p.lanes), nil
	}
	list, ok := turnsOf(code)
	if !ok {
		return wgsl.Variant{}, fmt.Errorf("webgpu: no choice %d", code)
	}
	lanes := p.lanes
	for _, t := range list {
		if t.scalar {
			lanes = 1
		}
	}
	v := choose(p.ready, pc, lanes)
	for _, t := range list {
		if t.change != nil && t.changes(v.Mode) {
			t.change(&v)
		}
	}
	return v, nil
}

// turnsOf takes a choice apart.
func turnsOf(code uint64) (list []*turn, ok bool) {
	for ; code > 0; code >>= 8 {
		n := code & 0xff
		if n == 0 || n > uint64(len(turns)) {
			return nil, false
		}
		list = append(list, &turns[n-1])
	}
	return list, true
}

// Combine puts turns of different kinds together.
func (d *device) Combine(codes []uint64) (c runtime.Choice, ok bool) {
	kinds := map[string]bool{}
	var places []uint64
	for _, code := range codes {
		list, ok := turnsOf(code)
		for i := range list {
			if kind, _, _ := strings.Cut(list[i].name, "="); ok && !kinds[kind] {
				kinds[kind] = true
				places = append(places, code>>(8*i)&0xff)
			}
		}
	}
	slices.Sort(places) // one name and one code for all that is the same
	for i, n := range places {
		c.Name = strings.TrimSpace(c.Name + " " + turns[n-1].name)
		c.Code |= n << (8 * i)
	}
	return c, len(places) > 1 && len(places) <= 8
}

// worthPoints is how many points a launch must have for a choice to be worth it.
const worthPoints = 1 << 14

// Choices lists the ways to run a launch; chains have none, nor have scatters and
// sorts.
func (d *device) Choices(unit []runtime.Launch) (c runtime.Choices) {
	l := &unit[0]
	p, ok := l.Prog.(*program)
	_, forced := force.Variant()
	if !ok || l.Chain != nil || p.kernel.Scatter() != ir.None || sorts(p.ready) || points(l.Dims[:l.Rank]) < worthPoints && !forced {
		return c
	}
	possible := map[wgsl.Mode]bool{wgsl.Map: !p.kernel.HasRows(), wgsl.Cols: p.kernel.HasRows(), wgsl.Rows: p.kernel.HasRows()}
	if dotOf(p.ready) >= 0 {
		possible = map[wgsl.Mode]bool{wgsl.Tiles: true}
	}
	b := fmt.Appendf(nil, "%d of %d dims", l.Kept, l.Rank)
	for _, n := range l.Dims[:l.Rank] {
		b = strconv.AppendInt(append(b, ' '), int64(bits.Len64(uint64(n))), 10)
		if n%4 == 0 {
			b = append(b, 'v')
		}
	}
	for i := range l.Args {
		b = append(b, codegen.ClassOf(l, i).String()...)
	}
	c.Facts = string(b)
	c.List = []runtime.Choice{{Name: "default"}}
	for i := range turns {
		for m, yes := range possible {
			if yes && turns[i].changes(m) && !(turns[i].scalar && p.lanes == 1) {
				c.List = append(c.List, runtime.Choice{Name: turns[i].name, Code: uint64(i + 1)})
				break
			}
		}
	}
	return c
}

// Changes never happen: shaders are compiled when they are first run.
func (d *device) Changes() uint64 { return 0 }

// Possible: a shader that cannot be made is an error of the launch.
func (d *device) Possible([]runtime.Launch) bool { return true }

// Try runs a launch once by its choice, alone on the device.
func (d *device) Try(unit []runtime.Launch) (time.Duration, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return 0, err
	}
	if err := d.gpu.Wait(); err != nil {
		return 0, deviceError(err)
	}
	begin := time.Now()
	if err := d.dispatchAll(unit, true); err != nil {
		return 0, err
	}
	err := deviceError(d.gpu.Wait())
	return time.Since(begin), err
}

var _ runtime.Tuner = (*device)(nil)
