package ir

import "testing"

func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		dt   DType
		bits uint64
		text string
	}{
		{Bool, 1, "true"},
		{Uint8, 255, "255"},
		{Int32, 0x80000000, "-2147483648"},
		{Int64, 1<<64 - 1, "-1"},
		{Uint64, 1<<64 - 1, "18446744073709551615"},
		{Float32, 0x80000000, "-0"},
		{Float32, 0x3dcccccd, "0.1"},
		{Float32, 1, "1e-45"},
		{Float32, 0x7f800000, "inf"},
		{Float32, 0xff800000, "-inf"},
		{Float32, 0x7fc00000, "nan"},
		{Float32, 0xffc00001, "nan:0xffc00001"},
		{Int8, 0x80, "-128"},
		{Uint16, 0xffff, "65535"},
		{Float16, 0x2e66, "0.099975586"},
		{Float16, 0x7bff, "65504"},
		{Float16, 1, "5.9604645e-08"},
		{BFloat16, 0x3dcd, "0.100097656"},
		{BFloat16, 0xff80, "-inf"},
		{BFloat16, 0x7fc0, "nan"},
		{Float16, 0x7c01, "nan:0x7c01"},
		{Float64, 0x7ff0000000000001, "nan:0x7ff0000000000001"},
		{Float64, 0x3fb999999999999a, "0.1"},
	} {
		if got := FormatBits(c.dt, c.bits); got != c.text {
			t.Errorf("FormatBits(%v, %#x) = %s, want %s", c.dt, c.bits, got, c.text)
		}
		if got, err := ParseBits(c.dt, c.text); err != nil || got != c.bits {
			t.Errorf("ParseBits(%v, %s) = %#x, %v, want %#x", c.dt, c.text, got, err, c.bits)
		}
	}
	for _, c := range []struct {
		dt   DType
		text string
	}{
		{Bool, "1"}, {Uint8, "256"}, {Uint8, "-1"}, {Int32, "1.5"}, {Float32, "nan:0x3f800000"},
		{Float32, "1e99"}, {Float64, "NaN"}, {Float32, ""}, {Invalid, "0"},
	} {
		if got, err := ParseBits(c.dt, c.text); err == nil {
			t.Errorf("ParseBits(%v, %q) = %#x, want an error", c.dt, c.text, got)
		}
	}
}
