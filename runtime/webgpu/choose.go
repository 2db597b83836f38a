package webgpu

import (
	"slices"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/ir"
)

// group is the invocations per workgroup: the smallest size that measured well
// everywhere, and one that every adapter allows.
const group = 64

// choose finds the variant that runs a piece. lanes is the most points per
// step that the kernel can be printed for.
func choose(k *codegen.Kernel, p *piece, lanes int) wgsl.Variant {
	l := &p.launch
	v := wgsl.Variant{Rank: l.Rank, Kept: l.Kept, Lanes: 1, Group: group}
	rows, dot := k.HasRows(), dotOf(k) >= 0
	switch {
	case dot:
		v.Mode, v.Tile, lanes = wgsl.Tiles, chooseTile(k, l, p.software), 1
		v.Group = v.Tile.Group()
	case rows:
		v.Mode = wgsl.Cols
		if byRows(k, l) {
			v.Mode = wgsl.Rows
		}
	}
	v.Args = make([]wgsl.Arg, len(l.Args))
	for i := range l.Args {
		a := &l.Args[i]
		x := wgsl.Arg{Class: codegen.ClassOf(l, i), Binding: p.binding[i], Skip: p.skip[i]}
		for _, s := range a.Stages {
			x.Stages = append(x.Stages, len(s.Dims))
		}
		if dot && x.Class != codegen.Staged {
			x.Class = codegen.Strided // in no loop along the innermost dim
		}
		if k.Operands[i].Kind == codegen.Output {
			for d, n := range l.Dims[:l.Rank] {
				if n > 1 && a.Stride[d] == 0 {
					x.Guard |= 1 << d
				}
			}
			if rows && k.Operands[i].Row {
				// That it stands still along the reduced dims is by design.
				x.Guard &= 1<<l.Kept - 1
			}
		}
		v.Args[i] = x
	}
	v.Bindings = make([]wgsl.Binding, len(p.windows))
	for w := range p.windows {
		v.Bindings[w] = wgsl.Binding{Write: p.windows[w].write, DT: bindingType(k, p, w)}
	}
	inner := l.Dims[l.Rank-1]
	if lanes > 1 && v.Mode != wgsl.Cols && (inner%int64(lanes) == 0 || l.Rank == 1 && v.Mode == wgsl.Map && inner > int64(lanes)) {
		vectorise(&v, k, p, lanes)
	}
	if v.Mode == wgsl.Rows {
		chooseGroup(&v, k, p)
	}
	return v
}

// bindingType is the dtype that all operands of a window agree on.
func bindingType(k *codegen.Kernel, p *piece, w int) ir.DType {
	dt := ir.Invalid
	for i, o := range k.Operands {
		switch {
		case p.binding[i] != w:
		case dt == ir.Invalid:
			dt = o.DT
		case dt != o.DT:
			return ir.Invalid
		}
	}
	return dt
}

// vectorise makes v compute lanes points per step if some operand can move by
// whole vectors; the others gather and scatter.
func vectorise(v *wgsl.Variant, k *codegen.Kernel, p *piece, lanes int) {
	vectors := make([]bool, len(p.windows))
	for w := range vectors {
		vectors[w] = true
	}
	for i := range v.Args {
		if w := p.binding[i]; w >= 0 && !aligned(p, i, lanes) {
			vectors[w] = false
		}
	}
	some := false
	for i := range v.Args {
		if w := p.binding[i]; w >= 0 && vectors[w] {
			v.Args[i].Vec, v.Bindings[w].Vec, some = true, true, true
		}
	}
	if !some {
		return
	}
	v.Lanes = lanes
	l := &p.launch
	n := l.Dims[l.Rank-1]
	if v.Mode != wgsl.Map || n%int64(lanes) == 0 {
		return
	}
	// The last vector runs past the end. Its loads find padding; its stores may
	// hit padding only.
	for i, o := range k.Operands {
		if o.Kind == codegen.Output && !v.Args[i].Skip && !padded(p, i, v.Args[i], n) {
			v.Tail = true
		}
	}
}

// aligned reports that operand i moves by whole vectors at vector addresses.
func aligned(p *piece, i, lanes int) bool {
	l, a, m := &p.launch, &p.launch.Args[i], int64(lanes)
	inner := l.Rank - 1
	if len(a.Stages) > 0 || a.Stride[inner] != 1 || a.Offset%m != 0 {
		return false
	}
	for d, n := range l.Dims[:inner] {
		if n > 1 && a.Stride[d]%m != 0 {
			return false
		}
	}
	return true
}

// padded reports that what follows an output's last element is no data.
func padded(p *piece, i int, x wgsl.Arg, n int64) bool {
	if !x.Vec {
		return x.Class == codegen.Splat
	}
	w := &p.windows[p.binding[i]]
	return w.off+(p.launch.Args[i].Offset+n)*elemSize >= w.buf.Bytes()
}

// unrolling says how rows are shared. A row that several passes go over is
// kept in registers, its steps written out, where few steps by invocations as
// few as possible cover it. On a CPU invocations are lanes: a barrier costs
// more than it gains until a row is shared by more than one vector of them.
type unrolling struct {
	groups []int // invocations per row, as few as will do
	steps  int   // that are written out at most
	work   int   // steps times instructions of the body, at most
}

var unrollings = map[bool]unrolling{
	false: {[]int{64, 128, 256}, 8, 1024},
	true:  {[]int{8, 16, 32, 64}, 64, 1024},
}

// chooseGroup decides how many invocations share a row, and whether they keep
// it in registers from one pass to the next.
func chooseGroup(v *wgsl.Variant, k *codegen.Kernel, p *piece) {
	un := unrollings[p.software]
	v.Group = un.groups[0]
	steps := int((reducedSize(&p.launch) + int64(v.Lanes) - 1) / int64(v.Lanes))
	if steps == 0 || scans(k) || wgsl.Passes(k) < 2 {
		return
	}
	for _, g := range un.groups {
		n := (steps + g - 1) / g
		if n <= un.steps && n*len(k.Body) <= un.work {
			v.Group, v.Unroll, v.Exact = g, n, n*g == steps
			return
		}
	}
}

func scans(k *codegen.Kernel) bool {
	return slices.ContainsFunc(k.Body, func(in ir.Instr) bool { return in.Op.Class() == ir.ClassScan })
}
