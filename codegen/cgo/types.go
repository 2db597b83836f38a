package cgo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-go/millrace/ir"
)

// ctype describes the C types of a dtype.
type ctype struct {
	short  string // v_f32 is a vector, s_f32 a scalar, e_f32 an element in memory
	scalar string // C type of a scalar value
	elem   string // C type of an element in memory
	size   int    // bytes of a value
	mem    int    // bytes of an element in memory
}

// Values of 8 and 16 bits are held in 32 bits, a 16-bit float as its bits. Then all vectors of a
// kernel have the same number of lanes; besides, no ISA has all byte operations. A Bool is a mask,
// all ones or zero; see [speller.mask].
var ctypes = func() (types [ir.NumDTypes]ctype) {
	name := func(dt ir.DType) string {
		switch dt {
		case ir.Float32:
			return "float"
		case ir.Float64:
			return "double"
		}
		return "mr_" + dt.Short()
	}
	for dt := ir.Bool; dt < ir.NumDTypes; dt++ {
		value, elem := dt.Held(), dt
		if dt == ir.Bool {
			value = ir.Int32
		}
		if elem != value {
			elem = integer(dt)
		}
		types[dt] = ctype{value.Short(), name(value), name(elem), value.Size(), dt.Size()}
	}
	return types
}()

// integer is the integer dtype as which C reads a narrow element.
func integer(dt ir.DType) ir.DType {
	if dt.IsInt() {
		return dt
	}
	return dt.Unsigned()
}

// narrow is the memory type of elements that are smaller than their values.
func narrow(dt ir.DType) (elem string, ok bool) {
	t := ctypes[dt]
	return strings.TrimPrefix(t.elem, "mr_"), t.mem < t.size
}

// held is the dtype whose value has what memory holds: for a Bool that is a number.
func held(dt ir.DType) ir.DType {
	if dt == ir.Bool {
		return ir.Uint8
	}
	return dt
}

// moved is the suffix of functions that move elements of a dtype.
func moved(dt ir.DType) string {
	if elem, ok := narrow(dt); ok {
		return elem
	}
	return short(dt)
}

// floating reports the floats that C has.
func floating(dt ir.DType) bool { return dt == ir.Float32 || dt == ir.Float64 }

// signedOf and unsignedOf are the integer types of a value's width.
func signedOf(dt ir.DType) ir.DType {
	if ctypes[dt].size == 8 {
		return ir.Int64
	}
	return ir.Int32
}

func unsignedOf(dt ir.DType) ir.DType {
	if ctypes[dt].size == 8 {
		return ir.Uint64
	}
	return ir.Uint32
}

// short is the suffix of types and helpers.
func short(dt ir.DType) string { return ctypes[dt].short }

// vectorTypes declares the types of a kernel with n lanes: s_ are scalar values, v_ are vectors of
// them, and m_ are the same vectors at any address.
func vectorTypes(n int) string {
	var b strings.Builder
	for _, dt := range []ir.DType{ir.Int32, ir.Uint32, ir.Int64, ir.Uint64, ir.Float32, ir.Float64} {
		t := ctypes[dt]
		fmt.Fprintf(&b, "typedef %s s_%s;\n", t.scalar, t.short)
		fmt.Fprintf(&b, "typedef %s v_%s __attribute__((vector_size(%d)));\n", t.scalar, t.short, n*t.size)
		fmt.Fprintf(&b, "typedef %s m_%s __attribute__((vector_size(%d), aligned(%d), may_alias));\n", t.scalar, t.short, n*t.size, t.size)
	}
	for _, dt := range narrowInts() {
		elem, size := dt.Short(), dt.Size()
		fmt.Fprintf(&b, "typedef mr_%s v_%s __attribute__((vector_size(%d)));\n", elem, elem, n*size)
		fmt.Fprintf(&b, "typedef mr_%s m_%s __attribute__((vector_size(%d), aligned(%d), may_alias));\n", elem, elem, n*size, size)
	}
	return b.String()
}

// narrowInts are the integers that are smaller than their values.
func narrowInts() (dts []ir.DType) {
	for dt := range ir.NumDTypes {
		if dt.IsInt() && dt.Held() != dt {
			dts = append(dts, dt)
		}
	}
	slices.SortFunc(dts, func(a, b ir.DType) int {
		if a.Size() != b.Size() {
			return a.Size() - b.Size()
		}
		return strings.Compare(b.Short(), a.Short()) // unsigned first
	})
	return dts
}

// each repeats form for lanes 0 to n-1; $ stands for the lane.
func each(n int, form string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(form, "$", fmt.Sprint(i))
	}
	return strings.Join(parts, ", ")
}
