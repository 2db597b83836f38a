package dist

import (
	"math"
	"sync"

	"github.com/millrace-go/millrace/internal/half"
)

// The functions of this file convert and add slices of 16-bit floats. Their bits are those of
// package half's functions on single numbers: every NaN of a sum becomes one NaN (0x7fc0 for
// bfloat16, 0x7e00 with the sign for float16). The loops are long, because a call for each number
// takes more time than the arithmetic.

const (
	roundBFloat16 = 0x7fff     // half of the last place, less 1
	infinity      = 0xff << 23 // of a float32
	floatSign     = 1 << 31
	halfBias      = 112 << 23 // from float16's exponent to float32's
	halfNormal    = 113 << 23 // the least normal float16
	halfInfinity  = halfBias + 0x7c00<<13
)

// addBFloat16s adds a and b into dst, which may be one of them.
func addBFloat16s(dst, a, b []uint16) {
	a, b = a[:len(dst)], b[:len(dst)]
	for k := range dst {
		x := math.Float32bits(math.Float32frombits(uint32(a[k])<<16) + math.Float32frombits(uint32(b[k])<<16))
		if x&^floatSign > infinity {
			x = math.Float32bits(float32(math.NaN()))
		}
		dst[k] = uint16((x + roundBFloat16 + x>>16&1) >> 16)
	}
}

func widenBFloat16s(dst []float32, a []uint16) {
	a = a[:len(dst)]
	for k := range dst {
		dst[k] = math.Float32frombits(uint32(a[k]) << 16)
	}
}

func narrowBFloat16s(dst []uint16, a []float32) {
	a = a[:len(dst)]
	for k := range dst {
		x := math.Float32bits(a[k])
		if x&^floatSign > infinity {
			dst[k] = half.NarrowBFloat16(a[k])
			continue
		}
		dst[k] = uint16((x + roundBFloat16 + x>>16&1) >> 16)
	}
}

// float16s has all float16 as float32: 256 KiB, of which sums use few lines, because the exponents
// of a tensor's elements are near each other.
func float16s() *[1 << 16]float32 {
	float16Table.Do(func() {
		for i := range float16Table.all {
			float16Table.all[i] = half.WidenFloat16(uint16(i))
		}
	})
	return &float16Table.all
}

var float16Table struct {
	sync.Once
	all [1 << 16]float32
}

func addFloat16s(dst, a, b []uint16) {
	a, b = a[:len(dst)], b[:len(dst)]
	all := float16s()
	for k := range dst {
		dst[k] = narrowFloat16(all[a[k]] + all[b[k]])
	}
}

func widenFloat16s(dst []float32, a []uint16) {
	a = a[:len(dst)]
	all := float16s()
	for k := range dst {
		dst[k] = all[a[k]]
	}
}

func narrowFloat16s(dst []uint16, a []float32) {
	a = a[:len(dst)]
	for k := range dst {
		dst[k] = narrowFloat16(a[k])
	}
}

// narrowFloat16 rounds normal numbers itself, so that the compiler can put it into loops.
func narrowFloat16(f float32) uint16 {
	x := math.Float32bits(f)
	if b := x &^ floatSign; b-halfNormal < halfInfinity-halfNormal {
		return uint16(x>>16&0x8000 | (b-halfBias+0xfff+b>>13&1)>>13)
	}
	return half.NarrowFloat16(f)
}
