package onnx

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// TestBadModels has models that must not open, and what the error must say.
func TestBadModels(t *testing.T) {
	x := []msg{valueMsg("x", 1, 2)}
	one := func(nodes ...msg) []byte { return graphParts{nodes: nodes, inputs: x, outputs: "y"}.model() }
	weight := func(w msg) []byte {
		return graphParts{nodes: []msg{nodeMsg("Add", "x w", "y")}, weights: []msg{w}, inputs: x, outputs: "y"}.model()
	}
	deep := graphParts{nodes: []msg{nodeMsg("Relu", "x", "y")}, outputs: "y"}.encode()
	for range 200 {
		deep = graphParts{nodes: []msg{nodeMsg("If", "c", "y", attrBody("then_branch", deep))}, outputs: "y"}.encode()
	}
	self := msg(nil).text(1, "F").text(4, "a").text(5, "b").part(7, msg(nil).text(1, "a").text(2, "b").text(4, "F").text(7, "own")).
		part(9, msg(nil).text(1, "own").varint(2, 1)).text(10, "own")
	foreign := func(op, domain string) msg {
		return msg(nil).text(1, "x").text(2, "y").text(3, "it").text(4, op).text(7, domain)
	}
	for name, c := range map[string]struct {
		data []byte
		say  []string
		is   error
	}{
		"nothing":        {nil, []string{"no graph"}, ErrFormat},
		"text":           {[]byte("hello, world"), nil, ErrFormat},
		"no opset":       {msg(nil).part(7, graphParts{}.encode()), []string{"opset"}, ErrFormat},
		"too deep":       {msg(nil).part(7, deep).part(8, msg(nil).varint(2, 21)), []string{"nested"}, ErrFormat},
		"future":         {graphParts{nodes: []msg{nodeMsg("Relu", "x", "y")}, inputs: x, outputs: "y"}.opset(99), []string{"opset 99", "7 to 24"}, nil},
		"old":            {graphParts{nodes: []msg{nodeMsg("Relu", "x", "y")}, inputs: x, outputs: "y"}.opset(6), []string{"opset 6"}, nil},
		"all at once":    {one(nodeMsg("Nope", "x", "a"), foreign("Gelu", "com.microsoft"), nodeMsg("Never", "a", "z")), []string{"n_Nope", "com.microsoft", "Gelu", "n_Never"}, millrace.ErrUnsupported},
		"later op":       {graphParts{nodes: []msg{nodeMsg("Gelu", "x", "y")}, inputs: x, outputs: "y"}.opset(19), []string{"n_Gelu", "opset 19"}, millrace.ErrUnsupported},
		"cycle":          {one(nodeMsg("Add", "x b", "a"), nodeMsg("Add", "a x", "b"), nodeMsg("Relu", "a", "y")), []string{"n_Add", `"b"`, "cycle"}, nil},
		"no value":       {one(nodeMsg("Add", "x v", "y")), []string{"n_Add", `"v"`}, nil},
		"no output":      {one(nodeMsg("Relu", "x", "z")), []string{`"y"`}, nil},
		"twice":          {one(nodeMsg("Relu", "x", "y"), nodeMsg("Abs", "x", "y")), []string{`"y"`, "two nodes"}, nil},
		"input again":    {one(nodeMsg("Relu", "x", "x"), nodeMsg("Relu", "x", "y")), []string{`"x"`}, nil},
		"short weight":   {weight(floats32("w", []int64{3}, 1, 2)), []string{`"w"`, "12 bytes"}, nil},
		"long weight":    {weight(ints64("w", []int64{1}, 1, 2)), []string{`"w"`}, nil},
		"negative":       {weight(floats32("w", []int64{-1}, 1)), []string{`"w"`}, millrace.ErrShape},
		"huge":           {weight(floats32("w", []int64{1 << 40, 1 << 40}, 1)), []string{`"w"`}, millrace.ErrShape},
		"many axes":      {weight(floats32("w", []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 1)), []string{`"w"`, "8"}, millrace.ErrShape},
		"complex":        {weight(tensorMsg("w", 14, nil)), []string{`"w"`, "complex64"}, millrace.ErrDType},
		"unknown type":   {weight(tensorMsg("w", 77, nil)), []string{`"w"`, "77"}, millrace.ErrDType},
		"two weights":    {graphParts{weights: []msg{floats32("w", nil, 1), floats32("w", nil, 1)}, outputs: "w"}.model(), []string{`"w"`}, nil},
		"weight's input": {graphParts{weights: []msg{floats32("w", []int64{2}, 1, 2)}, inputs: []msg{valueMsg("w", 1, 3)}, outputs: "w"}.model(), []string{`"w"`, "3"}, millrace.ErrShape},
		"no branch":      {one(nodeMsg("If", "x", "y", attrBody("then_branch", graphParts{nodes: []msg{nodeMsg("Relu", "x", "r")}, outputs: "r"}.encode()))), []string{"n_If", "else_branch"}, nil},
		"bad constant":   {one(nodeMsg("Constant", "", "y", msg(nil).text(1, "value_string").text(4, "a"))), []string{"n_Constant"}, millrace.ErrUnsupported},
		"endless":        {graphParts{nodes: []msg{foreign("F", "own")}, inputs: x, outputs: "y"}.model(self), []string{"calls itself"}, nil},
		"sequence":       {graphParts{inputs: []msg{msg(nil).text(1, "x").part(2, msg(nil).part(4, nil))}, outputs: "x"}.model(), []string{`"x"`}, nil},
	} {
		m, err := New(device0(t), c.data)
		if err == nil {
			t.Errorf("%s: opened: %v", name, m)
			continue
		}
		for _, part := range append(c.say, "onnx: model") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in: %v", name, part, err)
			}
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: not %v: %v", name, c.is, err)
		}
	}
}

// A file that ends early is an error, wherever it ends.
func TestCutShort(t *testing.T) {
	data := flattened().model()
	for n := range data {
		if m, err := New(device0(t), data[:n]); err == nil {
			t.Errorf("%d of %d bytes opened: %v", n, len(data), m.Inputs())
		}
	}
}

func TestBadInputs(t *testing.T) {
	m := opened(t, graphParts{
		nodes:   []msg{nodeMsg("Add", "a b", "y")},
		inputs:  []msg{valueMsg("a", 1, "n", 2), valueMsg("b", 1, "n", 2)},
		outputs: "y",
	}.model())
	f := millrace.Float32
	good := millrace.Ones(f, 3, 2)
	for name, c := range map[string]struct {
		in  tensors
		say string
		is  error
	}{
		"missing":   {tensors{"a": good}, `"b"`, nil},
		"unknown":   {tensors{"a": good, "b": good, "c": good}, `"c"`, nil},
		"dtype":     {tensors{"a": good, "b": millrace.Ones(millrace.Float64, 3, 2)}, `"b"`, millrace.ErrDType},
		"fixed":     {tensors{"a": good, "b": millrace.Ones(f, 3, 3)}, `"b"`, millrace.ErrShape},
		"rank":      {tensors{"a": millrace.Ones(f, 2), "b": good}, `"a"`, millrace.ErrShape},
		"same name": {tensors{"a": good, "b": millrace.Ones(f, 4, 2)}, "n", millrace.ErrShape},
		"failed":    {tensors{"a": good, "b": good.Reshape(7)}, `"b"`, millrace.ErrShape},
	} {
		if out, err := m.Run(ctx, c.in); err == nil || !strings.Contains(err.Error(), c.say) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, %v", name, out, err)
		}
	}
}

// TestBadAttributes runs each operator with attributes and inputs at random. An error names the
// node; a panic inside an operator is a fault of this package.
func TestBadAttributes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ints := []string{"axis", "axes", "perm", "kernel_shape", "strides", "pads", "dilations", "group", "keepdims", "to", "block_size", "blocksize",
		"num_groups", "num_heads", "q_num_heads", "kv_num_heads", "batch_dims", "size", "num_outputs", "split", "starts", "ends", "hidden_size",
		"output_height", "sampling_ratio", "output_shape", "output_padding", "rotary_embedding_dim", "num_scan_inputs", "k", "dtype", "layout"}
	values := []int64{-1 << 62, -9, -3, -2, -1, 0, 1, 2, 3, 4, 7, 1 << 20, 1 << 62}
	shapes := [][]int{{}, {0}, {1}, {4}, {2, 2}, {1, 3, 2}, {2, 4, 3, 3}, {1, 2, 1, 1, 2}}
	elems := []int64{1, 1, 1, 7, 7, 9, 2, 10}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		rows := table[name]
		if name == "Loop" || name == "If" || name == "Scan" {
			continue // they need graphs
		}
		for range 12 {
			version := max(rows[r.IntN(len(rows))].since, minOpset)
			if find(name, version) == nil {
				continue
			}
			g := graphParts{outputs: "y"}
			in, kinds, given := "", []string(nil), tensors{}
			for k := range 1 + r.IntN(5) {
				word := fmt.Sprint("i", k)
				elem, shape := elems[r.IntN(len(elems))], shapes[r.IntN(len(shapes))]
				in += " " + word
				g.inputs = append(g.inputs, msg(nil).text(1, word).part(2, msg(nil).part(1, msg(nil).varint(1, elem))))
				given[word] = millrace.Full(millrace.Int64, float64(r.IntN(4)), shape...).Cast(dtypes[elem].dtype)
				kinds = append(kinds, fmt.Sprint(dtypes[elem].name, shape))
			}
			var attrs []msg
			for range r.IntN(4) {
				attr := ints[r.IntN(len(ints))]
				if r.IntN(2) == 0 {
					attrs = append(attrs, attrInt64(attr, values[r.IntN(len(values))]))
					continue
				}
				list := make([]int64, r.IntN(5))
				for k := range list {
					list[k] = values[r.IntN(len(values))]
				}
				attrs = append(attrs, attrIntList(attr, list...))
			}
			g.nodes = []msg{nodeMsg(name, in, "y z", attrs...)}
			m, err := New(device0(t), g.opset(int64(version)))
			if err == nil {
				_, err = m.Run(ctx, given)
			}
			if errors.Is(err, errPanic) || err != nil && !strings.Contains(err.Error(), "n_"+name) {
				t.Errorf("%s of opset %d with %v: %v", name, version, kinds, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(flattened().model())
	f.Add([]byte{})
	d, err := millrace.Default()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := New(d, data); err == nil {
			if len(m.Outputs()) != len(m.graph.outputs) {
				t.Error("outputs are missing")
			}
		} else if !strings.HasPrefix(err.Error(), "onnx: model: ") {
			t.Errorf("the error does not name the model: %v", err)
		}
	})
}
