package onnx

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth limits how deep messages are nested: a graph in a node of a graph is three levels.
const maxDepth = 100

var errDepth = errors.New("messages are nested too deep")

// wire is the value of one field. Only the part that belongs to kind is set.
type wire struct {
	kind  protowire.Type
	num   uint64 // of a varint, or the bits of a fixed number
	bytes []byte // a part of the file, not a copy
	depth int
}

// fields maps the numbers of a message's fields to functions that take their values. Fields that
// it lacks are skipped.
type fields[M any] map[protowire.Number]func(m *M, w wire) error

// decode reads one message.
func decode[M any](data []byte, table fields[M], depth int) (*M, error) {
	m := new(M)
	if depth > maxDepth {
		return nil, errDepth
	}
	for len(data) > 0 {
		num, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		w := wire{kind: kind, depth: depth}
		switch kind {
		case protowire.VarintType:
			w.num, n = protowire.ConsumeVarint(data)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(data)
			w.num = uint64(v)
		case protowire.Fixed64Type:
			w.num, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			w.bytes, n = protowire.ConsumeBytes(data)
		default:
			n = protowire.ConsumeFieldValue(num, kind, data)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		if set := table[num]; set != nil {
			if err := set(m, w); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (w wire) want(kind protowire.Type) error {
	if w.kind != kind {
		return fmt.Errorf("a field has wire type %d and should have %d", w.kind, kind)
	}
	return nil
}

func setInt(dst *int64, w wire) error {
	*dst = int64(w.num)
	return w.want(protowire.VarintType)
}

func setString(dst *string, w wire) error {
	*dst = string(w.bytes)
	return w.want(protowire.BytesType)
}

func addString(dst *[]string, w wire) error {
	*dst = append(*dst, string(w.bytes))
	return w.want(protowire.BytesType)
}

// addNumbers appends the numbers of a repeated field, packed or one by one. width is the number of
// bytes of each, or 0 for varints.
func addNumbers[T any](dst *[]T, w wire, width int, value func(uint64) T) error {
	if w.kind != protowire.BytesType {
		if (w.kind == protowire.VarintType) != (width == 0) {
			return fmt.Errorf("a list of numbers has wire type %d", w.kind)
		}
		*dst = append(*dst, value(w.num))
		return nil
	}
	for data := w.bytes; len(data) > 0; {
		var v uint64
		var n int
		switch width {
		case 0:
			v, n = protowire.ConsumeVarint(data)
		case 4:
			var v32 uint32
			v32, n = protowire.ConsumeFixed32(data)
			v = uint64(v32)
		default:
			v, n = protowire.ConsumeFixed64(data)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		*dst = append(*dst, value(v))
		data = data[n:]
	}
	return nil
}

func addInts(dst *[]int64, w wire) error {
	return addNumbers(dst, w, 0, func(v uint64) int64 { return int64(v) })
}

func addFloats(dst *[]float32, w wire) error {
	return addNumbers(dst, w, 4, func(v uint64) float32 { return math.Float32frombits(uint32(v)) })
}

// setMessage reads a message that a field contains.
func setMessage[M any](dst **M, table fields[M], w wire) error {
	if err := w.want(protowire.BytesType); err != nil {
		return err
	}
	m, err := decode(w.bytes, table, w.depth+1)
	*dst = m
	return err
}

// addMessage appends a message of a repeated field.
func addMessage[M any](dst *[]*M, table fields[M], w wire) error {
	var m *M
	if err := setMessage(&m, table, w); err != nil {
		return err
	}
	*dst = append(*dst, m)
	return nil
}
