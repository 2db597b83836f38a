package onnx

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "CenterCropPad", since: 18, run: one(centerCropPad), onHost: 1 << 1},
		op{name: "Concat", since: 4, run: one(concat), host: hostConcat},
		op{name: "Constant", since: 1, run: constant, check: constantKnown},
		op{name: "ConstantOfShape", since: 9, run: constantOfShape, onHost: 1 << 0},
		op{name: "DepthToSpace", since: 1, run: one(depthToSpace)},
		op{name: "Expand", since: 8, run: one(expand), host: hostExpand, onHost: 1 << 1},
		op{name: "EyeLike", since: 9, run: one(eyeLike)},
		op{name: "Flatten", since: 1, run: one(flatten)},
		op{name: "Pad", since: 2, run: one(pad), onHost: 1<<1 | 1<<2 | 1<<3},
		op{name: "Range", since: 11, run: one(rangeOf), host: hostRange, onHost: 7},
		op{name: "Reshape", since: 5, run: one(reshape), host: hostReshape, onHost: 1 << 1},
		op{name: "Shape", since: 1, run: shape},
		op{name: "Size", since: 1, run: func(c *call) []*value {
			return []*value{onHost(hostInts(millrace.Int64, product(c.shape(0))).reshaped(nil))}
		}},
		op{name: "Slice", since: 1, run: one(slice), host: hostSlice, onHost: 1<<1 | 1<<2 | 1<<3 | 1<<4},
		op{name: "SpaceToDepth", since: 1, run: one(spaceToDepth)},
		op{name: "Split", since: 2, run: split, onHost: 1 << 1},
		op{name: "Squeeze", since: 1, run: one(squeeze), host: hostSqueeze, onHost: 1 << 1},
		op{name: "Tile", since: 6, run: one(func(c *call) *tensor { return c.t(0).Tile(c.ints(1)...) }), onHost: 1 << 1},
		op{name: "Transpose", since: 1, run: one(transpose)},
		op{name: "Trilu", since: 14, run: one(trilu), onHost: 1 << 1},
		op{name: "Unsqueeze", since: 1, run: one(unsqueeze), host: hostUnsqueeze, onHost: 1 << 1},
	)
}

func shape(c *call) []*value {
	dims := c.shape(0)
	n := len(dims)
	clip := func(v int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, 0), n)
	}
	start, end := clip(c.int("start", 0)), clip(c.int("end", n))
	return []*value{onHost(hostInts(millrace.Int64, dims[start:max(start, end)]...))}
}

func constantKnown(p *protoNode, version int) error {
	for _, a := range p.attrs {
		switch a.name {
		case "value", "value_float", "value_floats", "value_int", "value_ints":
			return nil
		}
	}
	return errConstant
}

var errConstant = unknownOp{"the constant is neither a tensor nor a list of numbers"}

func constant(c *call) []*value {
	if a := c.attr("value"); a != nil {
		return []*value{a.value}
	}
	if a := c.attr("value_int"); a != nil {
		return []*value{onHost(hostInts(millrace.Int64, int(a.i)).reshaped(nil))}
	}
	if c.given("value_ints") {
		return []*value{onHost(hostInts(millrace.Int64, c.list("value_ints")...))}
	}
	if a := c.attr("value_float"); a != nil {
		return []*value{onHost(&host{dt: millrace.Float32, dims: []int{}, f: []float64{float64(a.f)}})}
	}
	if a := c.attr("value_floats"); a != nil {
		h := newHost(millrace.Float32, []int{len(a.floats)})
		for i, v := range a.floats {
			h.f[i] = float64(v)
		}
		return []*value{onHost(h)}
	}
	c.fail("%w", errConstant)
	return nil
}

func constantOfShape(c *call) []*value {
	dims := c.ints(0)
	fill := newHost(millrace.Float32, []int{1})
	if a := c.attr("value"); a != nil && a.value != nil {
		if a.value.h == nil {
			t := a.value.t
			return results(t.Reshape().Expand(dims...))
		}
		fill = a.value.h
	}
	for _, d := range dims {
		if d < 0 {
			c.shapeFail("impossible shape %v", dims)
		}
	}
	if c.err != nil || fill.len() != 1 {
		c.shapeFail("the value has %d elements and should have one", fill.len())
		return nil
	}
	if n := product(dims); n <= hostLimit && n >= 0 && len(dims) <= 8 && slices.Max(append(dims, 0)) <= hostLimit {
		return []*value{onHost(fill.pick(dims, make([]int, n)))}
	}
	v := onHost(fill)
	t, err := v.tensor(c.f.r.place)
	if err != nil {
		c.fail("%w", err)
		return nil
	}
	return results(t.Reshape().Expand(dims...))
}

// target computes Reshape's shape: 0 is the size of the same dimension, -1 what is left.
func (c *call) target() []int {
	from, dims := c.shape(0), c.ints(1)
	zero := c.int("allowzero", 0) != 0
	out, known, free := slices.Clone(dims), 1, -1
	for i, d := range dims {
		switch {
		case d == 0 && !zero:
			if i >= len(from) {
				c.shapeFail("shape %v copies dimension %d of %v", dims, i, from)
				return nil
			}
			out[i] = from[i]
		case d == -1 && free < 0:
			free = i
			continue
		case d < 0:
			c.shapeFail("impossible shape %v", dims)
			return nil
		}
		if known = product([]int{known, out[i]}); known == mostElements {
			c.shapeFail("impossible shape %v", dims)
			return nil
		}
	}
	if free >= 0 {
		if known == 0 {
			// With a size of 0 any number fits. The one that would fit if that size were 1 keeps
			// the other dimensions together, as for larger batches.
			rest := func(dims []int) int {
				return product(slices.DeleteFunc(slices.Clone(dims), func(d int) bool { return d < 1 }))
			}
			if product(from) != 0 {
				c.shapeFail("shape %v does not fit %v", dims, from)
			}
			out[free] = rest(from) / rest(out)
			return out
		}
		out[free] = product(from) / known
		known *= out[free]
	}
	if known != product(from) {
		c.shapeFail("shape %v does not fit %v", dims, from)
	}
	return out
}

func reshape(c *call) *tensor {
	dims := c.target()
	if c.err != nil {
		return nil
	}
	return c.t(0).Reshape(dims...)
}

func hostReshape(c *call) (*host, error) {
	dims := c.target()
	if c.err != nil {
		return nil, c.err
	}
	return c.h(0).reshaped(dims), nil
}

func (c *call) squeezed() []int {
	from := c.shape(0)
	axes := c.axesOr("axes", 1, 13)
	var dims []int
	if axes == nil {
		for _, d := range from {
			if d != 1 {
				dims = append(dims, d)
			}
		}
		return dims
	}
	axes = c.axes(axes, len(from))
	for i, d := range from {
		switch {
		case !slices.Contains(axes, i):
			dims = append(dims, d)
		case d != 1:
			c.shapeFail("dimension %d of %v is not 1", i, from)
		}
	}
	return dims
}

func squeeze(c *call) *tensor { return c.t(0).Reshape(c.squeezed()...) }

func hostSqueeze(c *call) (*host, error) { return c.h(0).reshaped(c.squeezed()), c.err }

func (c *call) unsqueezed() []int {
	from, list := c.shape(0), c.axesOr("axes", 1, 13)
	axes := c.axes(list, len(from)+len(list))
	if c.err != nil {
		return nil
	}
	var dims []int
	for i := range len(from) + len(list) {
		if slices.Contains(axes, i) {
			dims = append(dims, 1)
		} else {
			dims, from = append(dims, from[0]), from[1:]
		}
	}
	return dims
}

func unsqueeze(c *call) *tensor {
	dims := c.unsqueezed()
	if c.err != nil {
		return nil
	}
	return c.t(0).Reshape(dims...)
}

func hostUnsqueeze(c *call) (*host, error) {
	dims := c.unsqueezed()
	return c.h(0).reshaped(dims), c.err
}

func flatten(c *call) *tensor {
	dims := c.shape(0)
	a := c.int("axis", 1)
	if a != len(dims) {
		a = c.axis(a, len(dims))
	}
	if c.err != nil {
		return nil
	}
	return c.t(0).Reshape(product(dims[:a]), product(dims[a:]))
}

func transpose(c *call) *tensor {
	perm := c.list("perm")
	if perm == nil {
		perm = seq(c.rank(0))
		slices.Reverse(perm)
	}
	return c.t(0).Permute(perm...)
}

func concat(c *call) *tensor { return millrace.Concat(c.int("axis", 1), c.ts()...) }

func hostConcat(c *call) (*host, error) {
	r := newHost(c.dtype(0), []int{0})
	for i := range c.in {
		h := c.h(i)
		if len(h.dims) != 1 || h.dt != r.dt {
			return nil, nil
		}
		r.i, r.f = append(r.i, h.i...), append(r.f, h.f...)
		r.dims[0] += h.dims[0]
	}
	if r.dims[0] > hostLimit {
		return nil, errLarge
	}
	c.axis(c.int("axis", 0), 1)
	return r, nil
}

// expanded is Expand's shape: the broadcast of both.
func (c *call) expanded() []int {
	from, to := c.shape(0), c.ints(1)
	if c.err != nil {
		return nil
	}
	dims := make([]int, max(len(from), len(to)))
	for d := range dims {
		a, b := 1, 1
		if i := d - len(dims) + len(from); i >= 0 {
			a = from[i]
		}
		if i := d - len(dims) + len(to); i >= 0 {
			b = to[i]
		}
		if a != b && a != 1 && b != 1 || b < 0 {
			c.shapeFail("shapes %v and %v do not broadcast", from, to)
		}
		dims[d] = b
		if b == 1 {
			dims[d] = a
		}
	}
	return dims
}

func expand(c *call) *tensor { return c.t(0).Expand(c.expanded()...) }

func hostExpand(c *call) (*host, error) {
	dims := c.expanded()
	n := 1
	for _, d := range dims {
		if n *= d; n > hostLimit {
			return nil, errLarge
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	_, at, err := broadcast(c.shape(0), dims)
	if err != nil {
		return nil, err
	}
	return c.h(0).pick(dims, at[0]), nil
}

// ranges are the ranges of Slice.
func (c *call) ranges() []millrace.Range {
	rank := c.rank(0)
	starts, ends, axes, steps := c.list("starts"), c.list("ends"), c.list("axes"), []int(nil)
	if c.n.opset >= 10 {
		starts, ends, axes = c.ints(1), c.ints(2), nil
		if c.has(3) {
			axes = c.ints(3)
		}
		if c.has(4) {
			steps = c.ints(4)
		}
	}
	if axes == nil {
		axes = seq(len(starts))
	}
	axes = c.axes(axes, rank)
	if len(ends) != len(starts) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		c.shapeFail("starts %v, ends %v, axes %v and steps %v have different lengths", starts, ends, axes, steps)
	}
	list := make([]millrace.Range, rank)
	for i, a := range axes {
		if c.err != nil {
			return nil
		}
		step := 1
		if steps != nil {
			step = steps[i]
		}
		list[a] = c.clipped(c.shape(0)[a], starts[i], ends[i], step)
	}
	return list
}

// clipped is a range of n positions whose limits may be far outside.
func (c *call) clipped(n, start, end, step int) millrace.Range {
	if step == 0 {
		c.shapeFail("a step is 0")
		return millrace.All
	}
	clip := func(v, lo, hi int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, lo), hi)
	}
	step = min(max(step, -math.MaxInt32), math.MaxInt32)
	if step > 0 {
		return millrace.R(clip(start, 0, n), clip(end, 0, n), step)
	}
	start, end = clip(start, -1, n-1), clip(end, -1, n-1)
	if start < 0 {
		return millrace.R(0, 0)
	}
	if end < 0 {
		end = -n - 1 // before the first
	}
	return millrace.R(start, end, step)
}

func slice(c *call) *tensor {
	list := c.ranges()
	if c.err != nil {
		return nil
	}
	return c.t(0).Slice(list...)
}

// hostSlice slices a list.
func hostSlice(c *call) (*host, error) {
	h := c.h(0)
	if len(h.dims) != 1 || c.n.opset >= 10 && (c.has(3) && len(c.ints(3)) != 1 || len(c.ints(1)) != 1 || len(c.ints(2)) != 1) {
		return nil, nil
	}
	starts, ends, step := c.list("starts"), c.list("ends"), 1
	if c.n.opset >= 10 {
		starts, ends = c.ints(1), c.ints(2)
		if c.has(4) {
			step = c.intScalar(4)
		}
		if c.has(3) {
			c.axis(c.intScalar(3), 1)
		}
	}
	if c.err != nil || len(starts) != 1 || len(ends) != 1 || step == 0 {
		return nil, c.err
	}
	n := h.dims[0]
	var places []int
	clip := func(v, lo, hi int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, lo), hi)
	}
	if step > 0 {
		for k := clip(starts[0], 0, n); k < clip(ends[0], 0, n); k += min(step, n+1) {
			places = append(places, k)
		}
	} else {
		for k := clip(starts[0], -1, n-1); k > clip(ends[0], -1, n-1); k += max(step, -n-1) {
			places = append(places, k)
		}
	}
	return h.pick([]int{len(places)}, places), nil
}

func split(c *call) []*value {
	rank := c.rank(0)
	axis := c.axis(c.int("axis", 0), rank)
	if c.err != nil || rank == 0 {
		c.shapeFail("Split of a value without dimensions")
		return nil
	}
	n, parts := c.shape(0)[axis], len(c.n.outputs)
	sizes := c.axesOr("split", 1, 13)
	if sizes == nil {
		if c.given("num_outputs") {
			parts = c.int("num_outputs", 0)
		}
		if parts < 1 || parts > 1<<16 {
			c.shapeFail("Split into %d parts", parts)
			return nil
		}
		each := (n + parts - 1) / parts
		for range parts {
			sizes = append(sizes, min(each, n))
			n -= sizes[len(sizes)-1]
		}
	}
	if c.in[0].h != nil && rank == 1 && c.err == nil {
		return splitHost(c, sizes)
	}
	return results(millrace.Split(c.t(0), axis, sizes...)...)
}

func splitHost(c *call, sizes []int) []*value {
	var out []*value
	h, at := c.h(0), 0
	for _, n := range sizes {
		if n < 0 || at+n > h.dims[0] {
			c.shapeFail("sizes %v do not fit %v", sizes, h.dims)
			return nil
		}
		places := seq(n)
		for k := range places {
			places[k] += at
		}
		out, at = append(out, onHost(h.pick([]int{n}, places))), at+n
	}
	if at != h.dims[0] {
		c.shapeFail("sizes %v do not fit %v", sizes, h.dims)
	}
	return out
}

func rangeOf(c *call) *tensor {
	start, limit, step := c.scalar(0), c.scalar(1), c.scalar(2)
	if step == 0 {
		c.shapeFail("the step is 0")
		return nil
	}
	return millrace.ArangeOn(c.f.r.place, c.dtype(0), start, limit, step)
}

func eyeLike(c *call) *tensor {
	dims := c.shape(0)
	if len(dims) != 2 {
		c.shapeFail("EyeLike of shape %v", dims)
		return nil
	}
	dt, k := c.dtypeAttr("dtype", c.dtype(0)), c.int("k", 0)
	row := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(dims[0]), 1).Reshape(-1, 1)
	col := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(dims[1]), 1)
	return col.Sub(row).EqScalar(float64(k)).Cast(dt)
}

func trilu(c *call) *tensor {
	k := 0
	if c.has(1) {
		k = min(max(c.intScalar(1), -1<<40), 1<<40)
	}
	if c.int("upper", 1) != 0 {
		return c.t(0).Triu(k)
	}
	return c.t(0).Tril(k)
}

func depthToSpace(c *call) *tensor {
	d, b := c.shape(0), c.int("blocksize", 0)
	if len(d) != 4 || b < 1 || d[1]%(b*b) != 0 {
		c.shapeFail("shape %v with blocks of %d", d, b)
		return nil
	}
	x, ch := c.t(0), d[1]/(b*b)
	if c.str("mode", "DCR") == "DCR" {
		x = x.Reshape(d[0], b, b, ch, d[2], d[3]).Permute(0, 3, 4, 1, 5, 2)
	} else {
		x = x.Reshape(d[0], ch, b, b, d[2], d[3]).Permute(0, 1, 4, 2, 5, 3)
	}
	return x.Reshape(d[0], ch, d[2]*b, d[3]*b)
}

func spaceToDepth(c *call) *tensor {
	d, b := c.shape(0), c.int("blocksize", 0)
	if len(d) != 4 || b < 1 || d[2]%b != 0 || d[3]%b != 0 {
		c.shapeFail("shape %v with blocks of %d", d, b)
		return nil
	}
	x := c.t(0).Reshape(d[0], d[1], d[2]/b, b, d[3]/b, b).Permute(0, 3, 5, 1, 2, 4)
	return x.Reshape(d[0], d[1]*b*b, d[2]/b, d[3]/b)
}

func centerCropPad(c *call) *tensor {
	x, dims, sizes := c.t(0), c.shape(0), c.ints(1)
	axes := seq(len(dims))
	if c.given("axes") {
		axes = c.axes(c.list("axes"), len(dims))
	}
	if len(axes) != len(sizes) {
		c.shapeFail("%d sizes for %d axes", len(sizes), len(axes))
		return nil
	}
	pads := make([]millrace.Padding, len(dims))
	for i, a := range axes {
		if c.err != nil || sizes[i] < 0 {
			c.shapeFail("size %d", sizes[i])
			return nil
		}
		if extra := sizes[i] - dims[a]; extra >= 0 {
			pads[a] = millrace.Padding{Before: extra / 2, After: extra - extra/2}
		} else {
			before := -extra / 2
			pads[a] = millrace.Padding{Before: -before, After: extra + before}
		}
	}
	return x.Pad(0, pads...)
}

// pad is Pad in its modes. Negative numbers remove elements.
func pad(c *call) *tensor {
	x, dims := c.t(0), c.shape(0)
	list, fill := c.list("pads"), c.float("value", 0)
	axes := seq(len(dims))
	if c.n.opset >= 11 {
		list, fill = c.ints(1), 0
		if c.has(2) {
			fill = c.scalar(2)
		}
		if c.has(3) {
			axes = c.axes(c.ints(3), len(dims))
		}
	}
	if len(list) != 2*len(axes) {
		c.shapeFail("%d pads for %d axes", len(list), len(axes))
	}
	if c.err != nil {
		return nil
	}
	mode := c.str("mode", "constant")
	pads := make([]millrace.Padding, len(dims))
	for i, a := range axes {
		before, after := list[i], list[len(axes)+i]
		if mode == "constant" {
			pads[a] = millrace.Padding{Before: before, After: after}
			continue
		}
		if before != 0 || after != 0 {
			x = c.padIndexed(x, a, dims[a], before, after, mode)
		}
	}
	if mode != "constant" || c.err != nil {
		return x
	}
	if x.DType() == millrace.Bool {
		return x.Cast(millrace.Uint8).Pad(fill, pads...).Cast(millrace.Bool)
	}
	return x.Pad(fill, pads...)
}

// padIndexed pads one axis with elements of the tensor itself.
func (c *call) padIndexed(x *tensor, axis, n, before, after int, mode string) *tensor {
	size := n + before + after
	if n == 0 || size < 0 || mode == "reflect" && n == 1 {
		c.shapeFail("pads %d and %d of a dimension of %d in mode %s", before, after, n, mode)
		return x
	}
	index := make([]int64, c.listed(size))
	for k := range index {
		at := k - before
		switch mode {
		case "edge":
			at = min(max(at, 0), n-1)
		case "wrap":
			at = ((at % n) + n) % n
		case "reflect":
			period := 2 * (n - 1)
			if at = ((at % period) + period) % period; at >= n {
				at = period - at
			}
		default:
			c.fail("%w: mode %q", millrace.ErrUnsupported, mode)
			return x
		}
		index[k] = int64(at)
	}
	return x.Take(millrace.FromSliceOn(c.f.r.place, index), axis)
}
