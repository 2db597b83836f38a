package onnx

import "math"

// The messages of ONNX's schema that a model is read from, with the fields that are used. Names
// and field numbers are those of onnx/onnx.proto of ONNX 1.19 (IR version 12), which is under the
// Apache-2.0 licence. Raw data are parts of the file's bytes.

type protoModel struct {
	ir        int64
	opsets    []*protoOpset
	graph     *protoGraph
	functions []*protoFunction
	meta      []*protoEntry
}

type protoOpset struct {
	domain  string
	version int64
}

type protoEntry struct{ key, value string }

type protoFunction struct {
	name, domain, overload string
	inputs, outputs        []string
	attrs                  []string
	defaults               []*protoAttr
	nodes                  []*protoNode
	opsets                 []*protoOpset
}

type protoGraph struct {
	name            string
	nodes           []*protoNode
	initializers    []*protoTensor
	sparse          int // sparse initializers, which are refused
	inputs, outputs []*protoValue
}

type protoNode struct {
	name, op, domain, overload string
	inputs, outputs            []string
	attrs                      []*protoAttr
}

type protoAttr struct {
	name, ref string
	kind      int64
	f         float32
	i         int64
	s         []byte
	t         *protoTensor
	g         *protoGraph
	floats    []float32
	ints      []int64
	strings   []string
}

// Values of protoAttr.kind.
const (
	attrFloat = iota + 1
	attrInt
	attrString
	attrTensor
	attrGraph
	attrFloats
	attrInts
	attrStrings
)

type protoValue struct {
	name string
	kind *protoType
}

type protoType struct {
	tensor *protoTensorType
	other  bool // a sequence, a map, an optional or a sparse tensor
}

type protoTensorType struct {
	elem  int64
	shape *protoShape
}

type protoShape struct{ dims []*protoDim }

type protoDim struct {
	known bool
	value int64
	param string
}

type protoTensor struct {
	name     string
	dims     []int64
	elem     int64
	floats   []float32
	ints32   []int64
	ints64   []int64
	doubles  []float64
	uints    []uint64
	strings  int
	raw      []byte
	external []*protoEntry
	location int64
}

// The tables refer to each other in circles, so init fills the two that are nested.
var (
	attrFields  fields[protoAttr]
	graphFields fields[protoGraph]
)

func init() {
	attrFields = fields[protoAttr]{
		1:  func(m *protoAttr, w wire) error { return setString(&m.name, w) },
		2:  func(m *protoAttr, w wire) error { m.f = math.Float32frombits(uint32(w.num)); return w.want(5) },
		3:  func(m *protoAttr, w wire) error { return setInt(&m.i, w) },
		4:  func(m *protoAttr, w wire) error { m.s = w.bytes; return w.want(2) },
		5:  func(m *protoAttr, w wire) error { return setMessage(&m.t, tensorFields, w) },
		6:  func(m *protoAttr, w wire) error { return setMessage(&m.g, graphFields, w) },
		7:  func(m *protoAttr, w wire) error { return addFloats(&m.floats, w) },
		8:  func(m *protoAttr, w wire) error { return addInts(&m.ints, w) },
		9:  func(m *protoAttr, w wire) error { return addString(&m.strings, w) },
		20: func(m *protoAttr, w wire) error { return setInt(&m.kind, w) },
		21: func(m *protoAttr, w wire) error { return setString(&m.ref, w) },
	}
	graphFields = fields[protoGraph]{
		1:  func(m *protoGraph, w wire) error { return addMessage(&m.nodes, nodeFields, w) },
		2:  func(m *protoGraph, w wire) error { return setString(&m.name, w) },
		5:  func(m *protoGraph, w wire) error { return addMessage(&m.initializers, tensorFields, w) },
		11: func(m *protoGraph, w wire) error { return addMessage(&m.inputs, valueFields, w) },
		12: func(m *protoGraph, w wire) error { return addMessage(&m.outputs, valueFields, w) },
		15: func(m *protoGraph, w wire) error { m.sparse++; return nil },
	}
}

var modelFields = fields[protoModel]{
	1:  func(m *protoModel, w wire) error { return setInt(&m.ir, w) },
	7:  func(m *protoModel, w wire) error { return setMessage(&m.graph, graphFields, w) },
	8:  func(m *protoModel, w wire) error { return addMessage(&m.opsets, opsetFields, w) },
	14: func(m *protoModel, w wire) error { return addMessage(&m.meta, entryFields, w) },
	25: func(m *protoModel, w wire) error { return addMessage(&m.functions, functionFields, w) },
}

var opsetFields = fields[protoOpset]{
	1: func(m *protoOpset, w wire) error { return setString(&m.domain, w) },
	2: func(m *protoOpset, w wire) error { return setInt(&m.version, w) },
}

var entryFields = fields[protoEntry]{
	1: func(m *protoEntry, w wire) error { return setString(&m.key, w) },
	2: func(m *protoEntry, w wire) error { return setString(&m.value, w) },
}

var functionFields = fields[protoFunction]{
	1:  func(m *protoFunction, w wire) error { return setString(&m.name, w) },
	4:  func(m *protoFunction, w wire) error { return addString(&m.inputs, w) },
	5:  func(m *protoFunction, w wire) error { return addString(&m.outputs, w) },
	6:  func(m *protoFunction, w wire) error { return addString(&m.attrs, w) },
	7:  func(m *protoFunction, w wire) error { return addMessage(&m.nodes, nodeFields, w) },
	9:  func(m *protoFunction, w wire) error { return addMessage(&m.opsets, opsetFields, w) },
	10: func(m *protoFunction, w wire) error { return setString(&m.domain, w) },
	11: func(m *protoFunction, w wire) error { return addMessage(&m.defaults, attrFields, w) },
	13: func(m *protoFunction, w wire) error { return setString(&m.overload, w) },
}

var nodeFields = fields[protoNode]{
	1: func(m *protoNode, w wire) error { return addString(&m.inputs, w) },
	2: func(m *protoNode, w wire) error { return addString(&m.outputs, w) },
	3: func(m *protoNode, w wire) error { return setString(&m.name, w) },
	4: func(m *protoNode, w wire) error { return setString(&m.op, w) },
	5: func(m *protoNode, w wire) error { return addMessage(&m.attrs, attrFields, w) },
	7: func(m *protoNode, w wire) error { return setString(&m.domain, w) },
	8: func(m *protoNode, w wire) error { return setString(&m.overload, w) },
}

var valueFields = fields[protoValue]{
	1: func(m *protoValue, w wire) error { return setString(&m.name, w) },
	2: func(m *protoValue, w wire) error { return setMessage(&m.kind, typeFields, w) },
}

var typeFields = fields[protoType]{
	1: func(m *protoType, w wire) error { return setMessage(&m.tensor, tensorTypeFields, w) },
	4: func(m *protoType, w wire) error { m.other = true; return nil },
	5: func(m *protoType, w wire) error { m.other = true; return nil },
	7: func(m *protoType, w wire) error { m.other = true; return nil },
	8: func(m *protoType, w wire) error { m.other = true; return nil },
	9: func(m *protoType, w wire) error { m.other = true; return nil },
}

var tensorTypeFields = fields[protoTensorType]{
	1: func(m *protoTensorType, w wire) error { return setInt(&m.elem, w) },
	2: func(m *protoTensorType, w wire) error { return setMessage(&m.shape, shapeFields, w) },
}

var shapeFields = fields[protoShape]{
	1: func(m *protoShape, w wire) error { return addMessage(&m.dims, dimFields, w) },
}

var dimFields = fields[protoDim]{
	1: func(m *protoDim, w wire) error { m.known = true; return setInt(&m.value, w) },
	2: func(m *protoDim, w wire) error { return setString(&m.param, w) },
}

var tensorFields = fields[protoTensor]{
	1: func(m *protoTensor, w wire) error { return addInts(&m.dims, w) },
	2: func(m *protoTensor, w wire) error { return setInt(&m.elem, w) },
	4: func(m *protoTensor, w wire) error { return addFloats(&m.floats, w) },
	5: func(m *protoTensor, w wire) error { return addInts(&m.ints32, w) },
	6: func(m *protoTensor, w wire) error { m.strings++; return nil },
	7: func(m *protoTensor, w wire) error { return addInts(&m.ints64, w) },
	8: func(m *protoTensor, w wire) error { return setString(&m.name, w) },
	9: func(m *protoTensor, w wire) error { m.raw = w.bytes; return w.want(2) },
	10: func(m *protoTensor, w wire) error {
		return addNumbers(&m.doubles, w, 8, math.Float64frombits)
	},
	11: func(m *protoTensor, w wire) error {
		return addNumbers(&m.uints, w, 0, func(v uint64) uint64 { return v })
	},
	13: func(m *protoTensor, w wire) error { return addMessage(&m.external, entryFields, w) },
	14: func(m *protoTensor, w wire) error { return setInt(&m.location, w) },
}
