package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// quietNaN is the NaN that literals print as nan, per float dtype.
func quietNaN(dt DType) uint64 {
	return dt.format().quietNaN()
}

// FormatBits prints a value of dtype dt in a form from which ParseBits gets the same bits: decimal
// integers, shortest floats, inf, -inf, nan, true, false. NaNs with other bits print as
// nan:0x7f800001.
func FormatBits(dt DType, bits uint64) string {
	switch {
	case dt == Bool:
		return strconv.FormatBool(bits != 0)
	case dt.IsFloat():
		return formatFloat(dt, bits)
	case dt.IsSigned():
		shift := 64 - dt.Bits()
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	}
	return strconv.FormatUint(bits, 10)
}

func formatFloat(dt DType, bits uint64) string {
	f := BitsFloat(dt, bits)
	switch {
	case math.IsNaN(f) && bits == quietNaN(dt):
		return "nan"
	case math.IsNaN(f):
		return fmt.Sprintf("nan:%#x", bits)
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	// The shortest digits of its float32 identify a 16-bit float.
	return strconv.FormatFloat(f, 'g', -1, dt.Compute().Bits())
}

// ParseBits reads the text of FormatBits, and any other decimal or hexadecimal spelling that
// strconv takes; floats are rounded to dt.
func ParseBits(dt DType, s string) (uint64, error) {
	bad := fmt.Errorf("%q is not a value of %v", s, dt)
	switch {
	case dt == Bool:
		if s != "true" && s != "false" {
			return 0, bad
		}
		return boolBit(s == "true"), nil
	case dt.IsFloat():
		return parseFloat(dt, s, bad)
	case dt.IsSigned():
		v, err := strconv.ParseInt(s, 0, dt.Bits())
		if err != nil {
			return 0, bad
		}
		return uint64(v) & widthMask(dt), nil
	case dt.IsInt():
		v, err := strconv.ParseUint(s, 0, dt.Bits())
		if err != nil {
			return 0, bad
		}
		return v, nil
	}
	return 0, bad
}

func parseFloat(dt DType, s string, bad error) (uint64, error) {
	if s == "nan" {
		return quietNaN(dt), nil
	}
	if payload, ok := strings.CutPrefix(s, "nan:"); ok {
		bits, err := strconv.ParseUint(payload, 0, dt.Bits())
		if err != nil || !isNaNBits(dt, bits) {
			return 0, bad
		}
		return bits, nil
	}
	width := dt.Bits()
	if dt.Storage() {
		width = 64 // the digits of a float32 are far from the middle of two 16-bit floats
	}
	f, err := strconv.ParseFloat(s, width)
	if err != nil || math.IsNaN(f) {
		return 0, bad
	}
	return FloatBits(dt, f), nil
}

func isNaNBits(dt DType, bits uint64) bool {
	return bits&(dt.signMask()-1) > dt.format().inf()
}

// SameValue reports that two elements of dtype dt are equal as results: the same bits, or two NaNs.
// Zeros of different sign differ.
func SameValue(dt DType, a, b uint64) bool {
	return a == b || dt.IsFloat() && isNaNBits(dt, a) && isNaNBits(dt, b)
}
