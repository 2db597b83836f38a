package npy

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// dtypes maps NumPy's names, without the byte order, to the dtypes of tensors. The first name of a
// dtype is the one that is written.
var dtypes = []struct{ numpy, name string }{
	{"b1", "bool"}, {"?", "bool"},
	{"u1", "uint8"}, {"u2", "uint16"}, {"u4", "uint32"}, {"u8", "uint64"},
	{"i1", "int8"}, {"i2", "int16"}, {"i4", "int32"}, {"i8", "int64"},
	{"f2", "float16"}, {"f4", "float32"}, {"f8", "float64"},
}

// strangers are the kinds of NumPy's dtypes that tensors do not have.
var strangers = map[byte]string{
	'c': "complex numbers", 'f': "floats of another width", 'S': "byte strings", 'a': "byte strings", 'U': "strings", 'O': "Python objects",
	'V': "raw bytes (bfloat16, perhaps: see package safetensors)", 'M': "dates", 'm': "time spans", 'T': "strings",
}

// parseDType reads a descr such as "<f4".
func parseDType(descr any) (dt millrace.DType, bigEndian bool, err error) {
	text, ok := descr.(string)
	if !ok {
		return dt, false, fmt.Errorf("%w: records are not read", millrace.ErrDType)
	}
	name := strings.TrimLeft(text, "<>=|")
	order := text[:len(text)-len(name)]
	if len(order) > 1 {
		return dt, false, fmt.Errorf("%w: the dtype is %q", ErrFormat, text)
	}
	for _, row := range dtypes {
		if row.numpy != name {
			continue
		}
		if dt, ok = ir.ParseDType(row.name); !ok || !dt.Tensor() {
			return dt, false, fmt.Errorf("%w: tensors have no %s", millrace.ErrDType, row.name)
		}
		bigHost := binary.NativeEndian.Uint16([]byte{0, 1}) == 1
		return dt, order == ">" || bigHost && (order == "=" || order == ""), nil
	}
	what := "unknown to tensors"
	if name != "" && strangers[name[0]] != "" {
		what = strangers[name[0]]
	}
	return dt, false, fmt.Errorf("%w: %q is %s", millrace.ErrDType, text, what)
}

// describe returns the descr that NumPy writes for a dtype on a little-endian machine.
func describe(dt millrace.DType) (string, error) {
	for _, row := range dtypes {
		if row.name != dt.String() {
			continue
		}
		if dt.Size() == 1 {
			return "|" + row.numpy, nil
		}
		return "<" + row.numpy, nil
	}
	return "", fmt.Errorf("%w: NumPy has no %v; Cast to float32 or use package safetensors", millrace.ErrDType, dt)
}
