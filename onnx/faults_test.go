package onnx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

func attrText(name, v string) msg {
	return msg(nil).text(1, name).text(4, v).varint(20, attrString)
}

// TestEdgeCases has nodes at the limits of what the specification says. Each model runs twice.
func TestEdgeCases(t *testing.T) {
	count := func(dims ...int) *millrace.Tensor {
		n := product(dims)
		return millrace.Arange(millrace.Float32, 0, float64(n), 1).Reshape(dims...)
	}
	seven := []msg{floats32("w", nil, 7)}
	slice := []msg{ints64("s", []int64{1}, -100), ints64("e", []int64{1}, 2), ints64("a", []int64{1}, 0), ints64("st", []int64{1}, -1)}
	unpadded := func(attrs ...msg) []msg {
		return []msg{nodeMsg("ConvTranspose", "x w", "y", append(attrs, attrIntList("strides", 2), attrIntList("output_shape", 4))...)}
	}
	kernel := []msg{floats32("w", []int64{1, 1, 3}, 1, 10, 100)}
	body := graphParts{nodes: []msg{nodeMsg("Identity", "c", "c2"), nodeMsg("Add", "v one", "v2"), nodeMsg("Add", "v2 v", "o")},
		weights: []msg{floats32("one", nil, 1)}, inputs: []msg{valueMsg("i", 7), valueMsg("c", 9), valueMsg("v", 1, 2)}, outputs: "c2 v2 o"}.encode()
	branch := func(op, in string) msg { return graphParts{nodes: []msg{nodeMsg(op, in, "r")}, outputs: "r"}.encode() }
	optional := msg(nil).text(1, "F").text(4, "a", "c", "lo").text(5, "b").text(10, "own").part(9, msg(nil).varint(2, 21)).
		part(7, nodeMsg("If", "c", "b", attrBody("then_branch", branch("Clip", "a lo")), attrBody("else_branch", branch("Identity", "a"))))
	for name, c := range map[string]struct {
		nodes, weights, functions []msg
		elem                      int64
		x, i                      *millrace.Tensor
		want                      string
	}{
		"a constant through Sum": {nodes: []msg{nodeMsg("Sum", "w", "s"), nodeMsg("Neg", "s", "z"), nodeMsg("Add", "x z", "y")},
			weights: seven, x: count(2), want: "[2] [-7 -6]"},
		"a constant through Clip": {nodes: []msg{nodeMsg("Clip", "w", "s"), nodeMsg("Mul", "x s", "y")},
			weights: seven, x: count(2), want: "[2] [0 7]"},
		"fewer indices": {nodes: []msg{nodeMsg("GatherElements", "x i", "y")}, x: count(3, 3),
			i: millrace.FromSlice([]int64{2, 1, 0}, 3, 1), want: "[3 1] [6 3 0]"},
		"one index": {nodes: []msg{nodeMsg("GatherElements", "x i", "y")}, x: count(3, 3),
			i: millrace.FromSlice([]int64{2}, 1, 1), want: "[1 1] [6]"},
		"from before the first": {nodes: []msg{nodeMsg("Slice", "x s e a st", "y")}, weights: slice, x: count(5), want: "[0] []"},
		"no turns": {nodes: []msg{nodeMsg("Loop", "n _ x", "_ y", attrBody("body", body))}, weights: []msg{ints64("n", nil, 0)},
			x: count(2), want: ""},
		"turns": {nodes: []msg{nodeMsg("Loop", "n _ x", "z s", attrBody("body", body)), nodeMsg("Concat", "z1 s", "y", attrInt64("axis", 0))},
			weights: []msg{ints64("n", nil, 2), floats32("z1", []int64{1, 2}, 5, 5)}, x: count(2), want: "[3 2] [5 5 1 3 3 5]"},
		"a scale of float32": {nodes: []msg{nodeMsg("Resize", "x _ s", "y")}, weights: []msg{floats32("s", []int64{1}, 0.7)},
			x: count(10), want: "[7] [0 2 3 5 6 7 9]"},
		"uneven padding": {nodes: unpadded(), weights: kernel, x: count(1, 1, 2).AddScalar(1), want: "[1 1 4] [10 102 20 200]"},
		"uneven padding, upper": {nodes: unpadded(attrText("auto_pad", "SAME_UPPER")), weights: kernel,
			x: count(1, 1, 2).AddScalar(1), want: "[1 1 4] [1 10 102 20]"},
		"a constant's sign": {nodes: []msg{nodeMsg("Cast", "w", "v", attrInt64("to", 3)), nodeMsg("Add", "x v", "y")},
			weights: []msg{tensorMsg("w", 2, []int64{1}).part(9, msg{200})}, elem: 3, x: millrace.FromSlice([]int8{0}), want: "[1] [-56]"},
		"the least dividend": {nodes: []msg{nodeMsg("Mod", "x w", "y", attrInt64("fmod", 1))}, elem: 3,
			weights: []msg{tensorMsg("w", 3, []int64{1}).part(9, msg{3})}, x: millrace.FromSlice([]int8{-128, 127, -3, 5}), want: "[4] [-2 1 0 2]"},
		"no output_dtype": {nodes: []msg{nodeMsg("QuantizeLinear", "x w", "y", attrInt64("output_dtype", 0))},
			weights: seven, x: count(2).MulScalar(14), want: "[2] [0 2]"},
		"an absent input in a branch": {nodes: []msg{msg(nil).text(1, "x", "c").text(2, "y").text(4, "F").text(7, "own")},
			weights: []msg{tensorMsg("c", 9, nil).part(9, msg{1})}, functions: []msg{optional}, x: count(3), want: "[3] [0 1 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			elem := c.elem
			if elem == 0 {
				elem = 1
			}
			in, inputs := tensors{"x": c.x}, []msg{msg(nil).text(1, "x").part(2, msg(nil).part(1, msg(nil).varint(1, elem)))}
			if c.i != nil {
				in["i"], inputs = c.i, append(inputs, msg(nil).text(1, "i").part(2, msg(nil).part(1, msg(nil).varint(1, 7))))
			}
			m := opened(t, graphParts{nodes: c.nodes, weights: c.weights, inputs: inputs, outputs: "y"}.model(c.functions...))
			for range 2 {
				if c.want == "" { // the type of the body's output is not declared
					if _, err := m.Run(ctx, in); err == nil || !strings.Contains(err.Error(), "not declared") {
						t.Fatal(err)
					}
					continue
				}
				ran(t, m, map[string]string{"y": c.want}, in)
			}
		})
	}
}

// TestHostLists checks that small files cannot make long lists on the host.
func TestHostLists(t *testing.T) {
	for name, g := range map[string]graphParts{
		"Pad": {nodes: []msg{nodeMsg("Pad", "x p", "y", attrText("mode", "edge"))},
			weights: []msg{floats32("x", []int64{1}, 1), ints64("p", []int64{2}, 1<<26, 1<<26)}},
		"MelWeightMatrix": {nodes: []msg{nodeMsg("MelWeightMatrix", "a b c d e", "y")}, weights: []msg{ints64("a", nil, 1<<10),
			ints64("b", nil, 1<<24), ints64("c", nil, 16000), floats32("d", nil, 0), floats32("e", nil, 8000)}},
		"RoiAlign": {nodes: []msg{nodeMsg("RoiAlign", "x r b", "y", attrInt64("output_height", 1<<12), attrInt64("output_width", 1<<12),
			attrInt64("sampling_ratio", 4))}, weights: []msg{floats32("x", []int64{1, 1, 1, 1}, 1), floats32("r", []int64{1, 4}, 0, 0, 1, 1), ints64("b", []int64{1}, 0)}},
	} {
		g.outputs = "y"
		if _, err := opened(t, g.model()).Run(ctx, nil); err == nil || !strings.Contains(err.Error(), errLarge.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var chain []msg
	for i := range 1100 {
		call := msg(nil).text(4, fmt.Sprint("f", i+1)).text(7, "own")
		chain = append(chain, msg(nil).text(1, fmt.Sprint("f", i)).text(10, "own").part(7, call))
	}
	data := graphParts{nodes: []msg{msg(nil).text(4, "f0").text(7, "own")}}.model(chain...)
	if _, err := New(device0(t), data); err == nil || !strings.Contains(err.Error(), "more than 1000") {
		t.Errorf("a long chain of functions: %v", err)
	}
}
