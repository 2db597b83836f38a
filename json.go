package millrace

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/millrace-go/millrace/ir"
	"github.com/millrace-go/millrace/stream"
)

// MaxJSON is the largest number of elements of a tensor in JSON. Use package npy for larger
// tensors.
const MaxJSON = 1 << 20

// written is the JSON form of a tensor.
type written struct {
	DType string            `json:"dtype"`
	Shape []int             `json:"shape"`
	Data  []json.RawMessage `json:"data"`
}

// MarshalJSON runs the ops that t needs and writes {"dtype": "float32", "shape": [2, 3], "data":
// [...]}, with the elements in row-major order. [Tensor.UnmarshalJSON] reads the same elements,
// bit for bit except the bits of a NaN. NaN and the infinities are the strings "NaN", "Infinity"
// and "-Infinity". More than [MaxJSON] elements are ErrShape.
func (t *Tensor) MarshalJSON() ([]byte, error) {
	const op = "marshaljson"
	h := hold(op, &t)
	defer h.end()
	if h.bad != nil {
		return nil, h.bad.v.Err()
	}
	if n := t.Len(); n > MaxJSON {
		return nil, failure(op, shapeErr("the tensor has %d elements, JSON may have %d", n, MaxJSON), t)
	}
	b := fmt.Appendf(nil, `{"dtype":%q,"shape":[`, t.DType())
	for i, d := range t.shape() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	b, err := elementTypes[t.DType()].json.write(append(b, `],"data":[`...), t)
	if err != nil {
		return nil, failure(op, err, t)
	}
	return append(b, "]}"...), nil
}

// UnmarshalJSON gives t the value that [Tensor.MarshalJSON] wrote. If t has a value, the new one
// is on t's stream, as with [Tensor.Set]; else it is on the default device. A shape that does not
// fit the data, or more than [MaxJSON] elements, is ErrShape. An unknown dtype, or an element
// that the dtype cannot hold, is ErrDType. After an error, t has its old value. null changes
// nothing.
func (t *Tensor) UnmarshalJSON(data []byte) error {
	const op = "unmarshaljson"
	if t == nil {
		return failure(op, errNilTensor)
	}
	if string(data) == "null" {
		return nil
	}
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return failure(op, err)
	}
	dt, _ := ir.ParseDType(w.DType)
	switch s := ir.Shape(w.Shape); {
	case !dt.Tensor():
		return failure(op, dtypeErr("%q is not a tensor dtype", w.DType))
	case w.Shape == nil || w.Data == nil:
		return failure(op, shapeErr("the shape or the data is missing"))
	case s.Check() != nil:
		return failure(op, shapeErr("%v", s.Check()))
	case len(w.Data) > MaxJSON:
		return failure(op, shapeErr("the tensor has %d elements, JSON may have %d", len(w.Data), MaxJSON))
	case s.Elems() != len(w.Data):
		return failure(op, shapeErr("%v has %d elements, the data has %d", s, s.Elems(), len(w.Data)))
	}
	var p Place = anywhere{}
	if s := t.Stream(); s != nil {
		p = s
	}
	r, err := elementTypes[dt].json.read(p, w.Shape, w.Data)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return failure(op, err)
	}
	defer done(r)
	if t.made() {
		t.Set(r)
	} else {
		stream.To(&t.v, stream.PlaceOf(&r.v), &r.v)
	}
	return t.Err()
}

// jsonCodec writes and reads the elements of one dtype.
type jsonCodec struct {
	write func(b []byte, t *Tensor) ([]byte, error)
	read  func(p Place, shape []int, data []json.RawMessage) (*Tensor, error)
}

func codecOf[T Element](put func(b []byte, v T) []byte, get func(s string) (T, error)) jsonCodec {
	return jsonCodec{
		func(b []byte, t *Tensor) ([]byte, error) {
			vs, err := Values[T](t)
			for i, v := range vs {
				if i > 0 {
					b = append(b, ',')
				}
				b = put(b, v)
			}
			return b, err
		},
		func(p Place, shape []int, data []json.RawMessage) (*Tensor, error) {
			vs := make([]T, len(data))
			for i, d := range data {
				v, err := get(string(d))
				if err != nil {
					return nil, dtypeErr("element %d: %v", i, err)
				}
				vs[i] = v
			}
			return FromSliceOn(p, vs, shape...), nil
		},
	}
}

func oneOf(s string, words ...string) error {
	for _, w := range words {
		if s == w {
			return nil
		}
	}
	return fmt.Errorf("%s is not one of %v", s, words)
}

func jsonUnsigned[T uint8 | uint16 | uint32 | uint64]() jsonCodec {
	bits := dtypeOf[T]().Bits()
	return codecOf(func(b []byte, v T) []byte { return strconv.AppendUint(b, uint64(v), 10) },
		func(s string) (T, error) { v, err := strconv.ParseUint(s, 10, bits); return T(v), err })
}

func jsonSigned[T int8 | int16 | int32 | int64]() jsonCodec {
	bits := dtypeOf[T]().Bits()
	return codecOf(func(b []byte, v T) []byte { return strconv.AppendInt(b, int64(v), 10) },
		func(s string) (T, error) { v, err := strconv.ParseInt(s, 10, bits); return T(v), err })
}

// jsonWords are the float values that JSON's numbers cannot express.
var jsonWords = map[string]float64{`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1)}

// jsonFloat writes the shortest digits from which a float of the given number of bits is read
// back.
func jsonFloat[T Element](bits int, wide func(T) float64, narrow func(float64) T) jsonCodec {
	return codecOf(func(b []byte, v T) []byte {
		x := wide(v)
		switch {
		case math.IsNaN(x):
			return append(b, `"NaN"`...)
		case math.IsInf(x, 1):
			return append(b, `"Infinity"`...)
		case math.IsInf(x, -1):
			return append(b, `"-Infinity"`...)
		}
		return strconv.AppendFloat(b, x, 'g', -1, bits)
	}, func(s string) (T, error) {
		if x, ok := jsonWords[s]; ok {
			return narrow(x), nil
		}
		if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
			return narrow(0), fmt.Errorf("%s is not a number", s)
		}
		x, err := strconv.ParseFloat(s, bits)
		if err == nil && math.IsInf(wide(narrow(x)), 0) {
			err = fmt.Errorf("%s is too large", s)
		}
		return narrow(x), err
	})
}
