package runtime

// Collapse rewrites a launch, in place and without allocating, into one with fewer and longer dims
// that visits the same points:
//
//   - An elementwise launch (Kept == Rank) first gets its dims sorted by the
//     strides of an output, largest outermost, which makes the innermost dim dense
//     there. Points are independent, so any order is legal.
//   - Dims of size 1 are dropped.
//   - Neighbouring dims that every operand walks as one dim are merged. Kept and
//     reduced dims are never merged with each other, and reduced dims keep
//     their order, because reductions depend on the logical position.
//
// outputs lists the operands that are written. An elementwise launch keeps at least one dim, a
// reducing launch at least one reduced dim, of size 1 if necessary. A launch with a dim of size 0
// is not changed.
func (l *Launch) Collapse(outputs []int) {
	for _, n := range l.Dims[:l.Rank] {
		if n == 0 {
			return
		}
	}
	reducing := l.Kept < l.Rank
	if !reducing {
		l.orderDims(outputs)
	}
	rank, kept := l.Rank, l.Kept
	l.Rank = 0
	for d := 0; d < kept; d++ {
		l.appendDim(d, 0)
	}
	l.Kept = l.Rank
	for d := kept; d < rank; d++ {
		l.appendDim(d, l.Kept)
	}
	if !reducing && l.Rank > 0 || reducing && l.Rank > l.Kept || rank == 0 {
		return
	}
	// The last dim was dropped because its size is 1: add it again.
	l.moveDim(l.Rank, rank-1)
	l.Rank++
	if !reducing {
		l.Kept++
	}
}

// appendDim appends dim d to the dims already taken. It drops d if its size is 1, and merges d
// with the last dim if all operands allow it and the last dim is at or after first.
func (l *Launch) appendDim(d, first int) {
	n := l.Dims[d]
	if n == 1 {
		return
	}
	if last := l.Rank - 1; last >= first && l.mergeable(last, d) {
		for a := range l.Args {
			l.Args[a].Stride[last] = l.Args[a].Stride[d]
		}
		l.Dims[last] *= n
		return
	}
	l.moveDim(l.Rank, d)
	l.Rank++
}

// mergeable reports that, for every operand, one step along outer is the same as a step past the
// end of inner.
func (l *Launch) mergeable(outer, inner int) bool {
	for a := range l.Args {
		st := &l.Args[a].Stride
		if st[outer] != st[inner]*l.Dims[inner] {
			return false
		}
	}
	return true
}

func (l *Launch) moveDim(to, from int) {
	l.Dims[to] = l.Dims[from]
	for a := range l.Args {
		l.Args[a].Stride[to] = l.Args[a].Stride[from]
	}
}

// orderDims sorts the dims by the strides of the output that moves along the most dims; equal
// strides keep their order. Dims along which that output does not move go outermost: they only
// repeat work or reads.
func (l *Launch) orderDims(outputs []int) {
	best, most := -1, -1
	for _, o := range outputs {
		moving := 0
		for d, n := range l.Dims[:l.Rank] {
			if n > 1 && l.Args[o].Stride[d] != 0 {
				moving++
			}
		}
		if moving > most {
			best, most = o, moving
		}
	}
	if best < 0 {
		return
	}
	st := &l.Args[best].Stride
	for i := 1; i < l.Rank; i++ {
		for j := i; j > 0 && outside(st[j], st[j-1]); j-- {
			l.swapDims(j, j-1)
		}
	}
}

// outside reports that a dim of stride a belongs outside a dim of stride b.
func outside(a, b int64) bool {
	if a == 0 || b == 0 {
		return a == 0 && b != 0
	}
	return max(a, -a) > max(b, -b)
}

func (l *Launch) swapDims(i, j int) {
	l.Dims[i], l.Dims[j] = l.Dims[j], l.Dims[i]
	for a := range l.Args {
		st := &l.Args[a].Stride
		st[i], st[j] = st[j], st[i]
	}
}
