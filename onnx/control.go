package onnx

import (
	"errors"
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "If", since: 1, run: ifOp, check: hasGraphs("then_branch", "else_branch")},
		op{name: "Loop", since: 1, run: loop, check: hasGraphs("body")},
		op{name: "Scan", since: 8, run: scan8, check: hasGraphs("body")},
		op{name: "Scan", since: 9, run: scan, check: hasGraphs("body")},
	)
}

// hasGraphs refuses nodes without their graphs.
func hasGraphs(names ...string) func(p *protoNode, version int) error {
	return func(p *protoNode, version int) error {
		for _, name := range names {
			if !slices.ContainsFunc(p.attrs, func(a *protoAttr) bool { return a.name == name && a.g != nil }) {
				return errors.New("attribute " + name + " is not a graph")
			}
		}
		return nil
	}
}

// body runs a graph of the node, which may read the names around the node.
func (c *call) body(name string, in []*value) []*value {
	a := c.attr(name)
	if c.err != nil || a == nil || a.graph == nil {
		c.fail("attribute %q is not a graph", name)
		return nil
	}
	out, err := c.f.r.graph(a.graph, c.f, c.f.attrs, in)
	if err != nil {
		c.fail("%w", err)
	}
	return out
}

func ifOp(c *call) []*value {
	if c.scalar(0) != 0 {
		return c.body("then_branch", nil)
	}
	return c.body("else_branch", nil)
}

// loop runs its body with the turn's number, the condition and the carried values. Results are the
// carried values after the last turn, and what each turn added to the scans.
func loop(c *call) []*value {
	turns := int64(math.MaxInt64)
	if c.has(0) {
		turns = int64(c.intScalar(0))
	}
	on := true
	if c.has(1) {
		on = c.scalar(1) != 0
	}
	if c.attr("body") == nil || c.attr("body").graph == nil || len(c.in) < 2 {
		c.fail("%w", errNoInput)
		return nil
	}
	n := len(c.in) - 2
	carried := slices.Clone(c.in[2:])
	var scans [][]*value
	for k := int64(0); k < turns && on && c.err == nil; k++ {
		if err := c.f.r.ctx.Err(); err != nil {
			c.fail("%w", err)
			return nil
		}
		turn := onHost(hostInts(millrace.Int64, int(k)).reshaped([]int{}))
		flag := newHost(millrace.Bool, []int{})
		flag.i[0] = 1
		out := c.body("body", append([]*value{turn, onHost(flag)}, carried...))
		if c.err != nil {
			return nil
		}
		if len(out) < 1+n {
			c.fail("the body has %d results and should have %d or more", len(out), 1+n)
			return nil
		}
		on = c.truth(out[0])
		carried = slices.Clone(out[1 : 1+n])
		scans = append(scans, out[1+n:])
	}
	if c.err != nil {
		return nil
	}
	out := carried
	for i := range len(c.attr("body").graph.outputs) - 1 - n {
		list := make([]*value, len(scans))
		for k := range scans {
			list[k] = scans[k][i]
		}
		out = append(out, c.stacked(list, 0, c.attr("body").graph.results[1+n+i]))
	}
	return out
}

// truth reads a condition.
func (c *call) truth(v *value) bool {
	inner := call{f: c.f, n: c.n, in: []*value{v}}
	yes := inner.scalar(0) != 0
	if inner.err != nil {
		c.fail("%w", inner.err)
	}
	return yes
}

// stacked joins what the turns of a loop gave.
// Of no turns, the declared type says what is empty.
func (c *call) stacked(list []*value, axis int, kind input) *value {
	if len(list) == 0 {
		dims := make([]int, len(kind.dims))
		for i, d := range kind.dims {
			dims[i] = max(d.size, 0)
		}
		at := c.axis(axis, len(dims)+1)
		if kind.any {
			c.fail("there are no turns, and the type of output %q is not declared", kind.name)
		}
		if c.err != nil {
			return nil
		}
		return device(millrace.ZerosOn(c.f.r.place, kind.dtype, slices.Insert(dims, at, 0)...))
	}
	ts := make([]*tensor, len(list))
	for i, v := range list {
		t, err := v.tensor(c.f.r.place)
		if err != nil {
			c.fail("%w", err)
			return nil
		}
		ts[i] = t
	}
	return device(millrace.Stack(axis, ts...))
}

// scan runs its body for each place of the scanned inputs' axes.
func scan(c *call) []*value {
	m := c.int("num_scan_inputs", 0)
	a := c.attr("body")
	if a == nil || a.graph == nil || m < 1 || m > len(c.in) {
		c.fail("%d scanned inputs of %d", m, len(c.in))
		return nil
	}
	n := len(c.in) - m
	outs := len(a.graph.outputs) - n
	inAxes, outAxes := c.perScan("scan_input_axes", m), c.perScan("scan_output_axes", outs)
	inBack, outBack := c.perScan("scan_input_directions", m), c.perScan("scan_output_directions", outs)
	if c.err != nil {
		return nil
	}
	length := -1
	for i := range m {
		x := c.t(n + i)
		inAxes[i] = c.axis(inAxes[i], x.Rank())
		if c.err != nil || length >= 0 && x.Dim(inAxes[i]) != length {
			c.shapeFail("scanned inputs have different lengths")
			return nil
		}
		length = x.Dim(inAxes[i])
	}
	state := slices.Clone(c.in[:n])
	scans := make([][]*value, outs)
	for k := range length {
		if err := c.f.r.ctx.Err(); err != nil {
			c.fail("%w", err)
			return nil
		}
		in := slices.Clone(state)
		for i := range m {
			x := c.t(n + i)
			ranges := make([]millrace.Range, x.Rank())
			at := k
			if inBack[i] != 0 {
				at = length - 1 - k
			}
			ranges[inAxes[i]] = millrace.At(at)
			in = append(in, device(x.Slice(ranges...)))
		}
		out := c.body("body", in)
		if c.err != nil {
			return nil
		}
		state = slices.Clone(out[:n])
		for i := range outs {
			scans[i] = append(scans[i], out[n+i])
		}
	}
	for i, list := range scans {
		if outBack[i] != 0 {
			slices.Reverse(list)
		}
		axis := outAxes[i]
		if axis < 0 && len(list) > 0 {
			axis = c.axis(axis, len(list[0].shape())+1)
		}
		state = append(state, c.stacked(list, axis, a.graph.results[n+i]))
	}
	return state
}

// perScan is a list with an element for each scanned input or output, of zeros if it is absent.
func (c *call) perScan(name string, n int) []int {
	list := c.list(name)
	if list == nil {
		list = make([]int, max(n, 0))
	}
	if len(list) != n {
		c.shapeFail("attribute %q has %d elements and should have %d", name, len(list), n)
	}
	return slices.Clone(list)
}

// scan8 is Scan of opset 8: its first input is optional lengths, which are refused, and every input
// has a batch axis, whose members run one after another.
func scan8(c *call) []*value {
	if c.has(0) {
		c.fail("%w: sequence lengths of Scan", millrace.ErrUnsupported)
		return nil
	}
	if len(c.in) < 2 || c.rank(1) == 0 {
		c.fail("%w", errNoInput)
		return nil
	}
	m := c.int("num_scan_inputs", 0)
	if m < 1 || m > len(c.in)-1 {
		c.fail("%d scanned inputs of %d", m, len(c.in)-1)
		return nil
	}
	back := c.list("directions")
	if back == nil {
		back = make([]int, m)
	}
	var batches [][]*tensor // for each output, its members
	for b := range c.shape(1)[0] {
		member := &call{f: c.f, n: c.n}
		for i := 1; i < len(c.in); i++ {
			member.in = append(member.in, device(c.t(i).Slice(millrace.At(b))))
		}
		for i, v := range back {
			if at := len(member.in) - m + i; v != 0 && i < m {
				member.in[at] = device(member.in[at].t.Flip(0))
			}
		}
		out := scan(member)
		if member.err != nil {
			c.fail("%w", member.err)
			return nil
		}
		if batches == nil {
			batches = make([][]*tensor, len(out))
		}
		for i, v := range out {
			t, err := v.tensor(c.f.r.place)
			if err != nil {
				c.fail("%w", err)
				return nil
			}
			batches[i] = append(batches[i], t)
		}
	}
	var all []*value
	for _, list := range batches {
		all = append(all, device(millrace.Stack(0, list...)))
	}
	return all
}
