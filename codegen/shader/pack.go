package shader

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/runtime"
)

// Grid is a dispatch's size in workgroups.
type Grid struct{ X, Y uint32 }

// gridWidth is the length of a row of a two-dimensional grid. A dispatch above a device's limit per
// dimension becomes a rectangle; its surplus workgroups return at once.
const gridWidth = 32768

// GridOf is the grid of a number of workgroups.
func GridOf(groups int64) Grid {
	if groups > gridWidth {
		return Grid{gridWidth, uint32((groups + gridWidth - 1) / gridWidth)}
	}
	return Grid{uint32(groups), 1}
}

// maxCount limits numbers that are split into coordinates: see divisor.
const maxCount = math.MaxInt32

// divisor gives the multiplier m and shift s with x/d = (2x·m >> 32) >> s for all x up to maxCount.
// m is 2^(31+s)/d rounded up; since d is at most 2^s, the rounding adds less than 1/d to the
// quotient.
func divisor(d uint32) (m, s uint32) {
	s = uint32(bits.Len32(d - 1))
	return uint32((uint64(1)<<(31+s) + uint64(d) - 1) / uint64(d)), s
}

func packDim(w []uint32, d uint32) {
	w[0] = d
	w[1], w[2] = divisor(max(d, 1))
}

// Threads is the number of workgroups (Rows, Tiles) or invocations (all others) that have work.
func (v *Variant) Threads(l *runtime.Launch) int64 {
	steps := int64(max(v.Steps, 1))
	if v.Turn > 0 {
		steps = 1
	}
	return (v.Units(l) + steps - 1) / steps
}

// Units is Threads for one step per invocation, or with Turn one line per invocation.
func (v *Variant) Units(l *runtime.Launch) int64 {
	n := int64(1)
	for i, d := range l.Dims[:l.Kept] {
		t := v.turnAlong(i)
		n *= (d + t - 1) / t / v.eachAlong(i)
	}
	switch v.Mode {
	case Rows:
		per := int64(max(v.Beside, v.Abreast, 1))
		return (n + per - 1) / per
	case Tiles:
		batch, m, n := v.Tile.sizes(l.Dims[:l.Kept])
		mt, nt := v.Tile.tiles(m, n)
		return batch * mt * nt
	case Map, Cols:
		if v.Lanes == 1 {
			break
		}
		last := l.Dims[v.laneDim()] / v.eachAlong(v.laneDim())
		n = n / last * ((last + int64(v.Lanes) - 1) / int64(v.Lanes))
	}
	return n
}

// Pack appends the words of the dispatch that runs l as a whole to dst, and returns its grid.
// Offsets of memory operands count elements from the start of the bound window. It fails if a
// position does not fit the 32 bits with which shaders count.
func (v *Variant) Pack(dst []uint32, k *codegen.Kernel, l *runtime.Launch) ([]uint32, Grid, error) {
	s := v.slots(k)
	base := len(dst)
	for range s.total {
		dst = append(dst, 0)
	}
	w := dst[base:]
	threads := v.Threads(l)
	if threads > maxCount {
		return nil, Grid{}, fmt.Errorf("shader: %d invocations in one dispatch", threads)
	}
	groups := threads
	single := v.Mode != Rows && v.Mode != Tiles && !v.staged()
	if single {
		groups = (threads + int64(v.Group) - 1) / int64(v.Group)
	}
	grid := GridOf(groups)
	w[wordCount] = uint32(threads)
	if v.Abreast > 0 {
		rows := int64(1)
		for _, d := range l.Dims[:l.Kept] {
			rows *= d
		}
		if rows > maxCount {
			return nil, Grid{}, fmt.Errorf("shader: %d rows in one dispatch", rows)
		}
		w[wordCount] = uint32(rows)
	}
	w[wordWidth] = grid.X
	if single {
		w[wordWidth] *= uint32(v.Group)
	}
	lanes := int64(v.Lanes)
	inner := l.Dims[v.laneDim()]
	w[wordInner] = uint32(inner)
	steps := int64(1)
	for i, d := range l.Dims[:v.Rank] {
		if i == v.laneDim() {
			d = (d + lanes - 1) / lanes
			if v.raggedRows() {
				d = rowSteps(l.Dims[i], lanes)
			}
		}
		if i >= l.Kept {
			steps *= d
		}
		if d > maxCount || steps > maxCount {
			return nil, Grid{}, fmt.Errorf("shader: a dim of %d in one dispatch", d)
		}
		t := v.turnAlong(i)
		packDim(w[wordDims+dimWords*i:], uint32((d+t-1)/t/v.eachAlong(i)))
	}
	switch {
	case v.Turn > 0:
		steps = l.Dims[v.Turn-1]
	case v.Steps > 1:
		steps = v.Units(l)
	}
	w[wordSteps] = uint32(steps)
	if v.Mode == Tiles {
		_, m, n := v.Tile.sizes(l.Dims[:l.Kept])
		if m > maxCount || n > maxCount {
			return nil, Grid{}, fmt.Errorf("shader: %d by %d results in one dispatch", m, n)
		}
		mt, nt := v.Tile.tiles(m, n)
		w[s.tile.m], w[s.tile.n] = uint32(m), uint32(n)
		packDim(w[s.tile.mTiles:], uint32(mt))
		packDim(w[s.tile.nTiles:], uint32(nt))
	}
	for i := range v.Args {
		if err := v.packArg(w, k, l, i, s.args[i]); err != nil {
			return nil, Grid{}, err
		}
	}
	for i, at := range s.scalars {
		w[at] = Word(k.Scalars[i], l.Scalars[i])
		if isWide(k.Scalars[i]) {
			w[at+1] = uint32(l.Scalars[i] >> 32)
		}
	}
	return dst, grid, nil
}

// packArg writes an operand's words. Shaders add strides modulo 2^32. This is exact if every
// position that they reach is in range, so negative strides need no special case.
func (v *Variant) packArg(w []uint32, k *codegen.Kernel, l *runtime.Launch, i int, s argSlots) error {
	a := &l.Args[i]
	unit := int64(1)
	if v.Args[i].Vec && !v.raggedRows() {
		unit = int64(v.Lanes)
	}
	lo, hi := Span(a, l.Dims[:v.Rank])
	if k.Operands[i].Kind == codegen.Index {
		// The position is a 64-bit base plus a 32-bit distance from it. The base is the lowest
		// position. The distance starts with the sum that the negative strides would subtract.
		if hi-lo > math.MaxUint32 {
			return fmt.Errorf("shader: index operand %d spans %d positions", i, hi-lo)
		}
		if len(a.Stages) == 0 {
			w[s.offset] = uint32(a.Offset - lo)
			w[s.base], w[s.base+1] = uint32(lo), uint32(uint64(lo)>>32)
		} else {
			w[s.offset] = uint32(a.Offset)
		}
	} else {
		w[s.offset] = uint32(a.Offset / unit)
	}
	// Positions below 0 are those that guards exclude, such as those before the first element of a
	// Pad's operand.
	if len(a.Stages) > 0 && (lo < math.MinInt32 || hi > maxCount) {
		return fmt.Errorf("shader: operand %d has positions [%d,%d] before its stages", i, lo, hi)
	}
	for d := range v.Rank {
		st := a.Stride[d]
		if !(v.Args[i].Vec && d == v.laneDim()) {
			st /= unit
		}
		w[s.stride+d] = uint32(st)
	}
	if v.Args[i].Indexed {
		if a.IndexSize > maxCount {
			return fmt.Errorf("shader: operand %d is looked up at one of %d indices", i, a.IndexSize)
		}
		w[s.step], w[s.size] = uint32(a.IndexStride/unit), uint32(a.IndexSize)
	}
	for j, st := range a.Stages {
		at := s.stages[j]
		w[at.offset] = uint32(st.Offset)
		for d := range st.Dims {
			if st.Dims[d] > maxCount {
				return fmt.Errorf("shader: operand %d has a stage of dim %d", i, st.Dims[d])
			}
			packDim(w[at.dims+dimWords*d:], uint32(st.Dims[d]))
			w[at.stride+d] = uint32(st.Stride[d])
		}
	}
	return nil
}

// Span is the lowest and highest position of an access before its stages.
func Span(a *runtime.Access, dims []int64) (lo, hi int64) {
	lo, hi = a.Offset, a.Offset
	for d, n := range dims {
		if n == 0 {
			continue
		}
		if step := a.Stride[d] * (n - 1); step < 0 {
			lo += step
		} else {
			hi += step
		}
	}
	return lo, hi
}
