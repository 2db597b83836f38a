package gpurun

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/fault"
	"github.com/millrace-go/millrace/internal/testhook"
	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Ways to run a launch among which tuning may choose, because no rule fits every GPU. A choice is 1
// plus the index of a turn in turns. It applies to all dispatches of the launch to which it makes
// sense.

// turn changes a shader that choose made.
type turn struct {
	name   string
	mode   []shader.Mode // modes of the shaders that it changes
	change func(v *shader.Variant)
	units  bool // it changes tiles by matrices, and only these
}

var turns = []turn{
	{"group=32", single, grouped(32), false},
	{"group=64", single, grouped(64), false},
	{"group=128", single, grouped(128), false},
	{"group=256", single, grouped(256), false},
	{"tile=32x32/4x4", tiles, tiled(shader.Tile{M: 32, N: 32, K: 16, RowsPer: 4, ColsPer: 4}), false},
	{"tile=64x64/4x4", tiles, tiled(shader.Tile{M: 64, N: 64, K: 16, RowsPer: 4, ColsPer: 4}), false},
	{"tile=64x64/8x8", tiles, tiled(shader.Tile{M: 64, N: 64, K: 16, RowsPer: 8, ColsPer: 8}), false},
	{"tile=128x128/8x8", tiles, tiled(shader.Tile{M: 128, N: 128, K: 16, RowsPer: 8, ColsPer: 8}), false},
	{"tile=128x128/16x16", tiles, tiled(shader.Tile{M: 128, N: 128, K: 8, RowsPer: 16, ColsPer: 16, Looped: true}), false},
	{"units=32x32/16x16", tiles, united(unitTiles[2]), true},
	{"units=64x64/32x32", tiles, united(unitTiles[1]), true},
	{"units=128x64/32x32", tiles, united(shader.Tile{M: 128, N: 64, K: 32, RowsPer: 32, ColsPer: 32}), true},
	{"units=128x128/64x32", tiles, united(unitTiles[0]), true},
	{"units=128x128/64x64", tiles, united(shader.Tile{M: 128, N: 128, K: 32, RowsPer: 64, ColsPer: 64}), true},
	{"units=128x64x16/32x32", tiles, united(partTiles[1]), true},
	{"units=128x128x16/64x32", tiles, united(partTiles[0]), true},
	{"units=32x32/16x16 ahead", tiles, united(ahead(unitTiles[2])), true},
	{"units=64x64/32x32 ahead", tiles, united(ahead(unitTiles[1])), true},
	{"units=64x64x16/32x32 ahead", tiles, united(shader.Tile{M: 64, N: 64, K: 16, RowsPer: 32, ColsPer: 32, Ahead: true}), true},
	{"units=128x64x16/32x32 ahead", tiles, united(ahead(partTiles[1])), true},
	{"units=128x128x16/64x32 ahead", tiles, united(ahead(partTiles[0])), true},
}

var (
	single = []shader.Mode{shader.Map, shader.Cols, shader.Rows} // modes whose invocations share nothing, or rows abreast
	tiles  = []shader.Mode{shader.Tiles}
)

// grouped changes the size of workgroups. The invocations that share a row stay as many.
func grouped(n int) func(*shader.Variant) {
	return func(v *shader.Variant) {
		if v.Mode == shader.Rows {
			share := v.Group / max(v.Abreast, 1)
			if v.Abreast == 0 || n < share || n < v.Cluster {
				return
			}
			v.Abreast = n / share
		}
		v.Group = n
	}
}

// tiled changes the sizes of a tile, and keeps what follows from the operands' layouts.
func tiled(t shader.Tile) func(*shader.Variant) {
	return func(v *shader.Variant) {
		t := t // devices change variants at once
		t.MDims, t.NDims, t.AlongA, t.AlongB = v.Tile.MDims, v.Tile.NDims, v.Tile.AlongA, v.Tile.AlongB
		v.Tile, v.Group = t, t.Group()
	}
}

// ahead is a tile that loads a stretch while it multiplies the one before.
func ahead(t shader.Tile) shader.Tile {
	t.Ahead = true
	return t
}

// united changes the sizes of a tile by matrices.
func united(t shader.Tile) func(*shader.Variant) {
	return func(v *shader.Variant) {
		v.Tile = unitsOf(t, &v.Tile, v.Tile.Matrix)
		v.Group = v.Tile.Group()
	}
}

// chosen returns the variant of a piece under its launch's choice. Tiles by matrices are compared
// with the host before their first use.
func (p *program) chosen(pc *piece) (shader.Variant, error) {
	if !p.groups || p.dev.refused.Load() {
		pc.subgroups = subgroups{}
	}
	if p.tile != nil {
		v := choose(p.ready, pc, p.lanes)
		v.Tile, v.Group = *p.tile, p.tile.Group()
		return v, nil
	}
	pc.matrix = p.dev.units.shape(p.factors)
	v, err := p.turned(pc)
	if err != nil || v.Tile.Matrix == (shader.Matrix{}) {
		return v, err
	}
	if right, err := p.dev.trust(v.Tile); right || err != nil {
		return v, err
	}
	pc.matrix = shader.Matrix{}
	return p.turned(pc)
}

// turned is what choose returns, changed by the launch's choice.
func (p *program) turned(pc *piece) (shader.Variant, error) {
	v, code := choose(p.ready, pc, p.lanes), pc.launch.Choice
	if code > uint64(len(turns)) {
		return v, p.dev.errorf("choice %d does not exist", code)
	}
	if code == 0 {
		return v, nil
	}
	units := v.Tile.Matrix != shader.Matrix{}
	if t := &turns[code-1]; slices.Contains(t.mode, v.Mode) && t.units == units {
		was := v
		if t.change(&v); units && !pc.allows(&v.Tile) {
			return was, nil
		}
	}
	return v, nil
}

// worthPoints is the number of points from which a choice is worthwhile.
const worthPoints = 1 << 14

// Choices lists the ways to run a launch. Chains, scatters, sorts and rows that have a workgroup
// each have none.
func (d *Runner) Choices(l *runtime.Launch) (c runtime.Choices) {
	p, ok := l.Prog.(*program)
	_, forced := testhook.Choice()
	if !ok || l.Chain != nil || p.kernel.Scatter() != ir.None || sorts(p.ready) || points(l.Dims[:l.Rank]) < worthPoints && !forced {
		return c
	}
	mode, units := shader.Map, false
	switch {
	case dotOf(p.ready) >= 0:
		mode, units = shader.Tiles, d.units.shape(p.factors) != shader.Matrix{}
	case p.kernel.HasRows():
		pc := piece{launch: *l, software: d.limits.software, groupSize: d.limits.groupSize, subgroups: d.limits.subgroups}
		if !p.groups || d.refused.Load() {
			pc.subgroups = subgroups{}
		}
		switch mode = shader.Cols; {
		case pc.abreast(p.ready):
			mode = shader.Rows
		case byRows(p.kernel, l):
			return c
		}
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
		if slices.Contains(turns[i].mode, mode) && turns[i].units == units {
			c.List = append(c.List, runtime.Choice{Name: turns[i].name, Code: uint64(i + 1)})
		}
	}
	return c
}

// Changes is 0: shaders are compiled at their first run, and no better code follows.
func (d *Runner) Changes() uint64 { return 0 }

// Try runs a launch once by its choice, alone on the device.
func (d *Runner) Try(l *runtime.Launch) (took time.Duration, err error) {
	defer d.guard(&err)
	if err := d.enter(); err != nil {
		return 0, err
	}
	if err := fault.Hit(fault.Launch); err != nil {
		return 0, err
	}
	if err := d.gpu.Wait(); err != nil {
		return 0, d.deviceError(err)
	}
	d.sweep()
	begin := time.Now()
	if err := d.dispatchAll([]runtime.Launch{*l}, true); err != nil {
		return 0, err
	}
	err = d.deviceError(d.gpu.Wait())
	return time.Since(begin), err
}

var _ runtime.Tuner = (*Runner)(nil)
