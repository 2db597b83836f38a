package shader

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// scalarTypes are the shader types of values. Small integers are held in words, extended by their
// sign, and 16-bit floats as their bits; 64-bit integers are pairs of words.
var scalarTypes = func() (types [ir.NumDTypes]string) {
	for dt := range types {
		switch dt := ir.DType(dt); {
		case dt == ir.Bool:
			types[dt] = "bool"
		case isWide(dt):
			types[dt] = "wide"
		case DTypes.Has(dt):
			types[dt] = dt.Held().Short()
		}
	}
	return types
}()

// memTypes are the types in memory, for the dtypes that tensors can have. Elements of unknown dtype
// are words, reinterpreted at each access.
var memTypes = func() (types [ir.NumDTypes]string) {
	for dt := range types {
		if DTypes.Has(ir.DType(dt)) {
			types[dt] = ir.DType(dt).Held().Short()
		}
	}
	types[ir.Invalid], types[ir.Bool] = "u32", "u32"
	return types
}()

// DTypes are the dtypes of tensors on a GPU: all with up to 32 bits.
var DTypes = ir.SetWhere(func(dt ir.DType) bool { return dt.Tensor() && dt.Bits() <= 32 })

// ElemSize is the bytes of one element in device memory, for every dtype that is not in Narrow: a
// word, because in most languages two invocations cannot write parts of one word without atomics.
const ElemSize = 4

// cells are the types of elements in memory that are narrower than a word, by their bytes.
var cells = [ElemSize]string{1: "u8", 2: "u16"}

// Narrow lists the dtypes whose elements take their own 1 or 2 bytes in device memory, where shaders
// can access elements of 16 and of 8 bits. It is empty for a language without types for them.
func (d *Dialect) Narrow(bits16, bits8 bool) ir.DTypeSet {
	can := [ElemSize]bool{1: bits8, 2: bits16}
	return ir.SetWhere(func(dt ir.DType) bool {
		n := dt.Size()
		return DTypes.Has(dt) && n < ElemSize && can[n] && d.Types[cells[n]] != ""
	})
}

func isWide(dt ir.DType) bool { return dt == ir.Int64 || dt == ir.Uint64 }

// splat spells a scalar expression over lanes.
func (d *Dialect) splat(expr, scalar string, lanes int) string {
	if lanes == 1 {
		return expr
	}
	return fmt.Sprintf("%s(%s)", d.vec(scalar, lanes), expr)
}

// literal spells a constant given by its bits, for every lane.
func (d *Dialect) literal(dt ir.DType, bits uint64, lanes int) string {
	if isWide(dt) {
		return fmt.Sprintf("wide(%s, %s)",
			d.splat(word(uint32(bits)), "u32", lanes), d.splat(word(uint32(bits>>32)), "u32", lanes))
	}
	return d.splat(d.scalarLiteral(dt, bits), scalarTypes[dt], lanes)
}

func (d *Dialect) scalarLiteral(dt ir.DType, bits uint64) string {
	switch dt.Held() {
	case ir.Bool:
		return strconv.FormatBool(bits != 0)
	case ir.Float32:
		return d.floatLiteral(uint32(bits))
	case ir.Int32:
		switch v := int32(Word(dt, bits)); {
		case v == math.MinInt32: // its magnitude is not an i32 literal
			return d.fill("$bits($i32, 0x80000000u)", 1)
		case v < 0:
			return fmt.Sprintf("(%d)", v)
		default:
			return strconv.Itoa(int(v))
		}
	}
	return word(uint32(bits))
}

// Word is an element in the form of device memory and run-time words: extended to 32 bits by its
// sign.
func Word(dt ir.DType, bits uint64) uint32 { return uint32(dt.HeldBits(bits)) }

// runWord is a run-time word.
func runWord(i int) string { return fmt.Sprintf("p[%d].%c", i/4, "xyzw"[i%4]) }

func word(w uint32) string {
	if w > 0xffff {
		return fmt.Sprintf("0x%xu", w)
	}
	return fmt.Sprintf("%du", w)
}

// floatLiteral is the shortest decimal that reads back as the same bits. Infinities and NaN have no
// decimal; they are made from their bits.
func (d *Dialect) floatLiteral(bits uint32) string {
	f := float64(math.Float32frombits(bits))
	if math.IsInf(f, 0) || f != f {
		return d.fill(fmt.Sprintf("$bits($f32, 0x%xu)", bits), 1)
	}
	s := strconv.FormatFloat(math.Abs(f), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	if bits>>31 != 0 {
		return "(-" + s + ")"
	}
	return s
}
