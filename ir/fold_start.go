package ir

import "math"

// startOf is the value with which the lanes of a reduction start.
var startOf = map[Op]func(dt DType) uint64{
	// +0 would turn a sum of -0 into +0.
	Sum: func(dt DType) uint64 {
		if dt.IsFloat() {
			return 1 << (dt.Bits() - 1)
		}
		return 0
	},
	Prod: OneBits,
	Max:  leastBits,
	Min:  greatestBits,
	Any:  func(DType) uint64 { return 0 },
	All:  func(DType) uint64 { return 1 },
	Dot:  func(DType) uint64 { return 0 },
}

// FoldStart is the value with which every lane of a reduction, and every block of a [Dot], starts,
// in dtype dt. Except for Dot it is neutral. ArgMax and ArgMin start with their first element; for
// them FoldStart returns 0.
func FoldStart(op Op, dt DType) uint64 {
	if start := startOf[op]; start != nil {
		return start(dt)
	}
	return 0
}

// leastBits is -inf, or the least integer.
func leastBits(dt DType) uint64 {
	switch {
	case dt.IsFloat():
		return FloatBits(dt, math.Inf(-1))
	case dt.IsSigned():
		return 1 << (dt.Bits() - 1)
	}
	return 0
}

// greatestBits is +inf, or the greatest integer.
func greatestBits(dt DType) uint64 {
	switch {
	case dt.IsFloat():
		return FloatBits(dt, math.Inf(1))
	case dt.IsSigned():
		return 1<<(dt.Bits()-1) - 1
	}
	return widthMask(dt)
}
