package onnx

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// msg is an encoded message. Its methods append fields.
type msg []byte

func (m msg) varint(num protowire.Number, v int64) msg {
	return protowire.AppendVarint(protowire.AppendTag(m, num, protowire.VarintType), uint64(v))
}

func (m msg) float(num protowire.Number, v float32) msg {
	return protowire.AppendFixed32(protowire.AppendTag(m, num, protowire.Fixed32Type), math.Float32bits(v))
}

func (m msg) text(num protowire.Number, s ...string) msg {
	for _, v := range s {
		m = protowire.AppendString(protowire.AppendTag(m, num, protowire.BytesType), v)
	}
	return m
}

func (m msg) part(num protowire.Number, parts ...msg) msg {
	for _, p := range parts {
		m = protowire.AppendBytes(protowire.AppendTag(m, num, protowire.BytesType), p)
	}
	return m
}

// names splits a list for the tests: "x y" are two names, and "_" is an absent one.
func names(list string) []string {
	var out []string
	word := ""
	for _, r := range list + " " {
		if r != ' ' {
			word += string(r)
			continue
		}
		if word == "_" {
			out = append(out, "")
		} else if word != "" {
			out = append(out, word)
		}
		word = ""
	}
	return out
}

// nodeMsg is a node named after its op, in the default domain.
func nodeMsg(op, in, out string, attrs ...msg) msg {
	return msg(nil).text(1, names(in)...).text(2, names(out)...).text(3, "n_"+op).text(4, op).part(5, attrs...)
}

func attrInt64(name string, v int64) msg {
	return msg(nil).text(1, name).varint(3, v).varint(20, attrInt)
}

func attrIntList(name string, v ...int64) msg {
	m := msg(nil).text(1, name).varint(20, attrInts)
	for _, x := range v {
		m = m.varint(8, x)
	}
	return m
}

func attrBody(name string, g msg) msg { return msg(nil).text(1, name).part(6, g).varint(20, attrGraph) }

func attrRef(name, ref string) msg { return msg(nil).text(1, name).text(21, ref).varint(20, attrInt) }

// floats32 is a tensor of raw little-endian floats.
func floats32(name string, dims []int64, v ...float32) msg {
	var raw []byte
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return tensorMsg(name, 1, dims).part(9, raw)
}

func ints64(name string, dims []int64, v ...int64) msg {
	m := tensorMsg(name, 7, dims)
	for _, x := range v {
		m = m.varint(7, x)
	}
	return m
}

func tensorMsg(name string, elem int64, dims []int64) msg {
	m := msg(nil).varint(2, elem).text(8, name)
	for _, d := range dims {
		m = m.varint(1, d)
	}
	return m
}

// external is a tensor of floats whose data are in another file.
func external(name string, dims []int64, entries ...string) msg {
	m := tensorMsg(name, 1, dims).varint(14, 1)
	for i := 0; i < len(entries); i += 2 {
		m = m.part(13, msg(nil).text(1, entries[i]).text(2, entries[i+1]))
	}
	return m
}

// valueMsg is a graph's input or output. A dimension is an int or a name.
func valueMsg(name string, elem int64, dims ...any) msg {
	shape := msg{}
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			shape = shape.part(1, msg(nil).varint(1, int64(d)))
		case string:
			shape = shape.part(1, msg(nil).text(2, d))
		}
	}
	return msg(nil).text(1, name).part(2, msg(nil).part(1, msg(nil).varint(1, elem).part(2, shape)))
}

// graphParts are the parts of a graph.
type graphParts struct {
	nodes, weights, inputs []msg
	outputs                string
}

func (g graphParts) encode() msg {
	m := msg(nil).text(2, "g").part(1, g.nodes...).part(5, g.weights...).part(11, g.inputs...)
	for _, name := range names(g.outputs) {
		m = m.part(12, msg(nil).text(1, name))
	}
	return m
}

// model is a model of opset 21.
func (g graphParts) model(functions ...msg) []byte { return g.opset(21, functions...) }

func (g graphParts) opset(v int64, functions ...msg) []byte {
	m := msg(nil).varint(1, 10).part(7, g.encode()).part(25, functions...)
	if len(functions) > 0 {
		m = m.part(8, msg(nil).text(1, "own").varint(2, 1))
	}
	return m.part(8, msg(nil).varint(2, v))
}
