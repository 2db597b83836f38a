package millrace

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// Range selects positions along one dimension: see [All], [R] and [At].
type Range struct {
	start, stop, step int
	kind              rangeKind
}

type rangeKind uint8

const (
	rangeAll rangeKind = iota // the zero Range is All
	rangeSpan
	rangeAt
)

// All selects a whole dimension.
var All = Range{}

// End as the stop of a range means as far as possible in the direction of the step: R(2, End)
// selects all positions from 2 on, and R(-1, End, -1) all positions backwards.
const End = math.MaxInt

// R selects start, start+step, … before stop: NumPy's start:stop:step. The step is 1 unless
// given. A negative start or stop counts from the end. Both are clipped to the dimension, so a
// range may select nothing. A step of 0, or more than one step, is ErrShape when the range is
// used.
func R(start, stop int, step ...int) Range {
	r := Range{start: start, stop: stop, step: 1, kind: rangeSpan}
	switch len(step) {
	case 0:
	case 1:
		r.step = step[0]
	default:
		r.step = 0
	}
	return r
}

// At selects one position and removes the dimension. A negative position counts from the end. A
// position that does not exist is ErrShape when it is used.
func At(i int) Range { return Range{start: i, kind: rangeAt} }

// String returns the text that NumPy uses between brackets.
func (r Range) String() string {
	switch r.kind {
	case rangeAt:
		return fmt.Sprint(r.start)
	case rangeSpan:
		var b strings.Builder
		fmt.Fprintf(&b, "%d:", r.start)
		if r.stop != End {
			fmt.Fprint(&b, r.stop)
		}
		if r.step != 1 {
			fmt.Fprintf(&b, ":%d", r.step)
		}
		return b.String()
	}
	return ":"
}

// on applies the range to a dimension of size n. It returns the first position, the step and the
// number of positions.
func (r Range) on(n int) (start, step, count int, err error) {
	switch r.kind {
	case rangeAll:
		return 0, 1, n, nil
	case rangeAt:
		i := r.start
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return 0, 0, 0, fmt.Errorf("position %d of a dimension of size %d", r.start, n)
		}
		return i, 1, 1, nil
	}
	if r.step == 0 {
		return 0, 0, 0, fmt.Errorf("range with step 0, or with several steps")
	}
	// A downward range is within [-1, n-1], an upward one within [0, n]; -1 and n are only ever
	// the stop.
	lo, hi := 0, n
	if r.step < 0 {
		lo, hi = -1, n-1
	}
	clip := func(i int) int {
		if i < 0 {
			i += n
		}
		return min(max(i, lo), hi)
	}
	start = clip(r.start)
	stop := hi
	switch {
	case r.stop != End:
		stop = clip(r.stop)
	case r.step < 0:
		stop = lo
	}
	span := stop - start
	if span == 0 || span < 0 != (r.step < 0) {
		return 0, 1, 0, nil
	}
	count = (abs(span)-1)/abs(r.step) + 1
	if count == 1 {
		return start, 1, 1, nil // a step that is never taken may be any number
	}
	return start, r.step, count, nil
}

func abs(i int) int {
	if i < 0 {
		return -i
	}
	return i
}

// Slice selects a range of each dimension; a dimension without a range is selected whole. It is
// NumPy's indexing by slices and numbers. The dtype is t's, and nothing is copied. More ranges
// than dimensions are ErrShape, and so are a position that does not exist and a step of 0.
//
//	t.Slice(millrace.R(0, 10), millrace.At(-1))   // NumPy's t[0:10, -1]
//	t.Slice(millrace.All, millrace.R(-1, millrace.End, -2))   // t[:, -1::-2]
func (t *Tensor) Slice(ranges ...Range) *Tensor {
	t = still(t)
	defer done(t)
	if t.DType() == Invalid {
		return failed("slice", errNilTensor, t)
	}
	final, out, attr, err := sliced(t.shape(), ranges)
	if err != nil {
		return failed("slice", err, t)
	}
	r := view(ir.Slice, t, out, attr)
	if len(final) == len(out) {
		return r
	}
	flat := view(ir.Reshape, r, final, nil)
	done(r)
	return flat
}

// sliced applies ranges to a shape. It returns the resulting shape, the same with the dimensions
// that At removes, and where the ranges start and how they step.
func sliced(in ir.Shape, ranges []Range) (final, full ir.Shape, attr *ir.Attr, err error) {
	if len(ranges) > len(in) {
		return nil, nil, nil, shapeErr("%d ranges for %v", len(ranges), in)
	}
	final, full = ir.Shape{}, slices.Clone(in)
	attr = &ir.Attr{Start: make([]int, len(in)), Step: make([]int, len(in))}
	for i, n := range in {
		var r Range
		if i < len(ranges) {
			r = ranges[i]
		}
		if attr.Start[i], attr.Step[i], full[i], err = r.on(n); err != nil {
			return nil, nil, nil, shapeErr("%v, dimension %d: %v", in, i, err)
		}
		if r.kind != rangeAt {
			final = append(final, full[i])
		}
	}
	return final, full, attr, nil
}
