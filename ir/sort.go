package ir

import (
	"cmp"
	"slices"
)

// SortKey maps an element to a number whose order, as an unsigned number of dt's width, is the
// order of sorts. For floats -0 is before +0, and all NaNs, whatever their sign, are last and
// equal. descending reverses the order of numbers; NaN stays last. ArgMax finds the greatest key of
// the ascending order, ArgMin that of the descending one.
func SortKey(dt DType, bits uint64, descending bool) uint64 {
	mask := widthMask(dt)
	key := bits
	switch {
	case dt.IsFloat() && isNaNBits(dt, bits):
		return mask
	case dt.IsFloat() && bits>>(dt.Bits()-1) != 0:
		key = ^bits & mask
	case dt.IsSigned():
		key = bits ^ 1<<(dt.Bits()-1)
	}
	if descending {
		key = ^key & mask
	}
	return key
}

// SortOrder gives the positions of a row's elements in sorted order; equal elements keep their
// order. It defines ArgSort.
func SortOrder(dt DType, row []uint64, descending bool) []int {
	keys := make([]uint64, len(row))
	order := make([]int, len(row))
	for i, x := range row {
		keys[i], order[i] = SortKey(dt, x, descending), i
	}
	slices.SortFunc(order, func(i, j int) int {
		if keys[i] != keys[j] {
			return cmp.Compare(keys[i], keys[j])
		}
		return i - j
	})
	return order
}
