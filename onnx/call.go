package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-go/millrace"
)

type tensor = millrace.Tensor

// op is a row of the table of operators.
type op struct {
	name   string
	since  int                                   // first opset of the default domain that the row is for
	run    func(c *call) []*value                // nil: these opsets of the op are not known
	host   func(c *call) (*host, error)          // used if all inputs are on the host
	onHost uint32                                // bits of the inputs that are read on the host alone
	check  func(p *protoNode, version int) error // refuses what run does not know, when the model is opened
}

// table has the rows of each operator, newest first. The tables of the other files fill it.
var table = map[string][]op{}

func register(rows ...op) {
	for _, r := range rows {
		table[r.name] = append(table[r.name], r)
		slices.SortFunc(table[r.name], func(a, b op) int { return b.since - a.since })
	}
}

// find returns an operator's row for an opset, or nil.
func find(name string, version int) *op {
	rows := table[name]
	for i := range rows {
		if rows[i].since <= version {
			if rows[i].run == nil {
				return nil
			}
			return &rows[i]
		}
	}
	return nil
}

// call is a node with its inputs while it runs. Its methods keep the first error in err, so that op
// functions read like formulas.
type call struct {
	f   *frame
	n   *node
	in  []*value
	err error
}

func (c *call) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *call) shapeFail(format string, args ...any) {
	c.fail("%w: "+format, append([]any{millrace.ErrShape}, args...)...)
}

// has reports whether an input is present.
func (c *call) has(i int) bool { return i < len(c.in) && c.in[i] != nil }

// want reports whether the node uses an output.
func (c *call) want(i int) bool { return i < len(c.n.outputs) && c.n.outputs[i] != "" }

var errNoInput = errors.New("an input is missing")

// t is an input as a tensor.
func (c *call) t(i int) *tensor {
	if !c.has(i) {
		c.fail("%w: %d", errNoInput, i)
		return new(tensor)
	}
	t, err := c.in[i].tensor(c.f.r.place)
	if err != nil {
		c.fail("%w", err)
		return new(tensor)
	}
	return t
}

// ts are all inputs as tensors.
func (c *call) ts() []*tensor {
	list := make([]*tensor, len(c.in))
	for i := range list {
		list[i] = c.t(i)
	}
	return list
}

func (c *call) rank(i int) int { return len(c.shape(i)) }

func (c *call) shape(i int) []int {
	if !c.has(i) {
		c.fail("%w: %d", errNoInput, i)
		return nil
	}
	return c.in[i].shape()
}

func (c *call) dtype(i int) millrace.DType {
	if !c.has(i) {
		c.fail("%w: %d", errNoInput, i)
		return millrace.Invalid
	}
	return c.in[i].dtype()
}

// h is an input on the host. A tensor is read from the device, which [Stats] counts.
func (c *call) h(i int) *host {
	if !c.has(i) {
		c.fail("%w: %d", errNoInput, i)
		return newHost(millrace.Int64, []int{0})
	}
	v := c.in[i]
	if v.h != nil {
		return v.h
	}
	c.f.r.m.reads.Add(1)
	h, err := readHost(c.f.r.ctx, v.t)
	if err != nil {
		c.fail("%w", err)
		return newHost(millrace.Int64, []int{0})
	}
	return h
}

// ready computes a tensor whose values decide the size of a result. [Stats] counts it.
func (c *call) ready(t *tensor) *tensor {
	if c.err != nil {
		return t
	}
	c.f.r.m.reads.Add(1)
	if err := t.EvalContext(c.f.r.ctx); err != nil {
		c.fail("%w", err)
	}
	return t
}

// mostListed is the largest number of elements of a list that an op makes on the host.
const mostListed = 1 << 24

// listed is the number of elements of a list of these dimensions, which an op makes on the host.
func (c *call) listed(dims ...int) int {
	n := product(dims)
	if n > mostListed {
		c.fail("%w: %v elements made on the host, of %d at most", errLarge, dims, mostListed)
		return 0
	}
	return n
}

// ints are the elements of an input of integers.
func (c *call) ints(i int) []int {
	h := c.h(i)
	if h.f != nil {
		c.fail("%w: input %d has %v and should have integers", millrace.ErrDType, i, h.dt)
	}
	list := make([]int, len(h.i))
	for k, v := range h.i {
		list[k] = int(v)
	}
	return list
}

// scalar is the only element of an input.
func (c *call) scalar(i int) float64 {
	h := c.h(i)
	if h.len() != 1 {
		c.shapeFail("input %d has %d elements and should have one", i, h.len())
		return 0
	}
	return h.at(0)
}

func (c *call) intScalar(i int) int {
	h := c.h(i)
	if h.len() != 1 || h.f != nil {
		c.shapeFail("input %d should be one integer", i)
		return 0
	}
	return int(h.i[0])
}

// attr finds an attribute; in a function, a reference is one of the call.
func (c *call) attr(name string) *attr {
	a := c.n.attrs[name]
	if a != nil && a.ref != "" {
		return c.f.attrs[a.ref]
	}
	return a
}

func (c *call) given(name string) bool { return c.attr(name) != nil }

func (c *call) int(name string, or int) int {
	if a := c.attr(name); a != nil {
		return int(a.i)
	}
	return or
}

func (c *call) float(name string, or float64) float64 {
	if a := c.attr(name); a != nil {
		return float64(a.f)
	}
	return or
}

func (c *call) str(name, or string) string {
	if a := c.attr(name); a != nil {
		return string(a.s)
	}
	return or
}

// list is an attribute of integers, or nil.
func (c *call) list(name string) []int {
	a := c.attr(name)
	if a == nil {
		return nil
	}
	list := make([]int, len(a.ints))
	for k, v := range a.ints {
		list[k] = int(v)
	}
	return list
}

func (c *call) dtypeAttr(name string, or millrace.DType) millrace.DType {
	a := c.attr(name)
	if a == nil {
		return or
	}
	dt, err := dtypeOf(a.i)
	if err != nil {
		c.fail("attribute %q: %w", name, err)
	}
	return dt
}

// axis checks an axis of an array of a rank; a negative one counts from the last.
func (c *call) axis(a, rank int) int {
	if a < -rank || a >= rank {
		c.shapeFail("axis %d of %d dimensions", a, rank)
		return 0
	}
	if a < 0 {
		a += rank
	}
	return a
}

func (c *call) axes(list []int, rank int) []int {
	out := make([]int, len(list))
	for i, a := range list {
		out[i] = c.axis(a, rank)
		if c.err == nil && slices.Contains(out[:i], out[i]) {
			c.shapeFail("axis %d occurs twice", a)
		}
	}
	return out
}

// axesOr are the axes of an attribute before an opset, and of an input from then on. nil means that
// there are none.
func (c *call) axesOr(name string, input, since int) []int {
	if c.n.opset >= since {
		if c.has(input) {
			return c.ints(input)
		}
		return nil
	}
	if c.given(name) {
		return c.list(name)
	}
	return nil
}

// likeT casts a number to a 0-d tensor beside t, with t's dtype.
func (c *call) like(t *tensor, v float64) *tensor {
	return millrace.FullOn(c.f.r.place, t.DType(), v)
}

// seq counts from 0 to n-1.
func seq(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// one makes an op function of one result.
func one(f func(c *call) *tensor) func(c *call) []*value {
	return func(c *call) []*value {
		t := f(c)
		if c.err != nil {
			return nil
		}
		return []*value{device(t)}
	}
}

func results(ts ...*tensor) []*value {
	out := make([]*value, len(ts))
	for i, t := range ts {
		if t != nil {
			out[i] = device(t)
		}
	}
	return out
}
