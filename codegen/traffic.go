package codegen

import (
	"sync"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/runtime"
)

// Traffic is the memory that a launch of k moves, in bytes: for each operand the elements that its
// access reaches, each counted once, times the device's bytes per element. If guards compare
// positions with bounds, as those of Pad and Concat do, only the elements inside count. Stats and
// plans use this count; it does not include effects of caches.
func Traffic(k *Kernel, l *runtime.Launch, elemSize *[ir.NumDTypes]int) (read, written int64) {
	whole := k.scattersApart(l)
	inside, room := k.inside(l)
	for i, o := range k.Operands {
		if o.Kind == Index || i >= len(l.Args) {
			continue
		}
		n := int64(elemSize[o.DT])
		points := int64(1) // at each of which an index may find another element
		for d := range l.Rank {
			size := l.Dims[d]
			if inside != nil {
				size = inside[i].size(d, size)
			}
			if l.Args[i].Stride[d] != 0 || l.Dims[d] == 0 {
				n *= size
			} else {
				points *= size
			}
		}
		if size := l.Args[i].IndexSize; size > 0 && l.Args[i].IndexStride != 0 {
			if !whole || !o.Row {
				size = min(size, points)
			}
			n *= size
		}
		if o.Kind == Output {
			written += n
		} else {
			read += n
		}
	}
	if room != nil {
		boxes.Put(room)
	}
	return read, written
}

// scattersApart reports a scatter whose operand has other memory than its output. The operand is
// then copied whole.
func (k *Kernel) scattersApart(l *runtime.Launch) bool {
	at := k.Scatter()
	return at != ir.None && len(l.Args) == len(k.Operands) && l.Args[slotOf(k.Body[at])].Buf != l.Args[k.Stores[0].Operand].Buf
}

// box is a part of a launch's points: along some dims it has the indices from..to-1.
type box struct {
	bound    uint32 // the dims, one bit each
	from, to [runtime.MaxRank]int64
}

// size is the number of indices along a dim that are in the box, of n.
func (b *box) size(d int, n int64) int64 {
	if b.bound&(1<<d) == 0 {
		return n
	}
	return max(0, b.to[d]-b.from[d])
}

// within restricts the box to from..to-1 along dim d.
func (b *box) within(d int, from, to int64) {
	if b.bound&(1<<d) != 0 {
		from, to = max(from, b.from[d]), min(to, b.to[d])
	}
	b.bound |= 1 << d
	b.from[d], b.to[d] = from, max(from, to)
}

// boxes keeps the memory of lists that inside gave: launches with guards come by the hundred.
var boxes = sync.Pool{New: func() any { return new([]box) }}

// inside gives, for each operand, the points at which it is read; nil if no guard restricts them.
// The list is stored in room, which goes back to boxes.
func (k *Kernel) inside(l *runtime.Launch) (list []box, room *[]box) {
	for _, in := range k.Body {
		guard := ir.None
		switch in.Op {
		case ir.Load:
			guard = in.Args[0]
		case ir.LoadAt:
			guard = in.Args[1]
		}
		if guard == ir.None || len(l.Args) != len(k.Operands) {
			continue
		}
		if room == nil {
			room = boxes.Get().(*[]box)
			*room = append((*room)[:0], make([]box, len(k.Operands))...)
			list = *room
		}
		b := &list[uint32(in.Imm)]
		if b.bound != 0 { // read by several loads
			*b = box{bound: 1 << 31}
			continue
		}
		k.narrow(l, guard, b)
	}
	for i := range list {
		if list[i].bound&(1<<31) != 0 {
			list[i].bound = 0
		}
	}
	return list, room
}

// narrow restricts a box by a guard: an AND of tests that an OR of positions is below the sign bit.
func (k *Kernel) narrow(l *runtime.Launch, guard ir.Ref, b *box) {
	in := &k.Body[guard]
	switch {
	case in.Op == ir.And && in.DT == ir.Bool:
		k.narrow(l, in.Args[0], b)
		k.narrow(l, in.Args[1], b)
	case in.Op == ir.Lt && k.Body[in.Args[1]].Op == ir.Const && k.Body[in.Args[1]].Imm == 1<<31 && k.Body[in.Args[0]].DT == ir.Uint32:
		k.notNegative(l, in.Args[0], b)
	}
}

// notNegative restricts a box to points at which these positions are not negative.
func (k *Kernel) notNegative(l *runtime.Launch, value ir.Ref, b *box) {
	in := &k.Body[value]
	if in.Op == ir.Or {
		k.notNegative(l, in.Args[0], b)
		k.notNegative(l, in.Args[1], b)
		return
	}
	if in.Op != ir.IndexLo {
		return
	}
	a, along := &l.Args[uint32(in.Imm)], -1
	for d := range l.Rank {
		if a.Stride[d] != 0 {
			if along >= 0 {
				return
			}
			along = d
		}
	}
	switch {
	case along < 0 || len(a.Stages) > 0:
	case a.Stride[along] > 0: // offset + stride*i >= 0
		from := (-a.Offset + a.Stride[along] - 1) / a.Stride[along]
		b.within(along, max(0, from), l.Dims[along])
	default:
		to := int64(0)
		if a.Offset >= 0 {
			to = a.Offset/-a.Stride[along] + 1
		}
		b.within(along, 0, min(to, l.Dims[along]))
	}
}
