package onnx

import (
	"slices"

	"github.com/millrace-go/millrace"
)

const fromEnd = millrace.IndexFromEnd

func init() {
	register(
		op{name: "ArgMax", since: 1, run: one(func(c *call) *tensor { return argExtreme(c, (*tensor).ArgMax) })},
		op{name: "ArgMin", since: 1, run: one(func(c *call) *tensor { return argExtreme(c, (*tensor).ArgMin) })},
		op{name: "Compress", since: 9, run: one(compress)},
		op{name: "CumSum", since: 11, run: one(cumSum), onHost: 1 << 1},
		op{name: "Gather", since: 1, run: one(gather), host: hostGather},
		op{name: "GatherElements", since: 11, run: one(gatherElements)},
		op{name: "GatherND", since: 11, run: one(gatherND)},
		op{name: "NonZero", since: 9, run: one(func(c *call) *tensor { return millrace.NonZero(millrace.Int64, c.ready(c.t(0))).T() })},
		op{name: "OneHot", since: 9, run: one(oneHot), onHost: 1 << 1},
		op{name: "ReverseSequence", since: 10, run: one(reverseSequence), onHost: 1 << 1},
		op{name: "Scatter", since: 9, run: one(scatterElements)},
		op{name: "Scatter", since: 11},
		op{name: "ScatterElements", since: 11, run: one(scatterElements)},
		op{name: "ScatterND", since: 11, run: one(scatterND)},
		op{name: "TensorScatter", since: 24, run: one(tensorScatter), onHost: 1 << 2},
		op{name: "TopK", since: 1, run: topK, onHost: 1 << 1},
		op{name: "Unique", since: 11, run: unique},
	)
}

func argExtreme(c *call, f func(*tensor, ...int) *tensor) *tensor {
	axis := c.axis(c.int("axis", 0), c.rank(0))
	x := c.t(0)
	if c.err != nil {
		return nil
	}
	var r *tensor
	if c.int("select_last_index", 0) != 0 {
		r = f(x.Flip(axis), axis).ScalarSub(float64(c.shape(0)[axis] - 1))
	} else {
		r = f(x, axis)
	}
	if c.int("keepdims", 1) != 0 {
		r = r.Unsqueeze(axis)
	}
	return r
}

// gather casts to what Take wants: integers of a tensor.
func gather(c *call) *tensor { return c.t(0).Take(c.t(1), c.int("axis", 0), fromEnd) }

// hostGather takes elements of a list.
func hostGather(c *call) (*host, error) {
	h, index := c.h(0), c.h(1)
	if len(h.dims) != 1 || index.f != nil || index.len() > hostLimit {
		return nil, nil
	}
	c.axis(c.int("axis", 0), 1)
	places := make([]int, index.len())
	for k, v := range index.i {
		if places[k] = c.axis(int(v), h.dims[0]); c.err != nil {
			return nil, c.err
		}
	}
	return h.pick(index.dims, places), nil
}

func compress(c *call) *tensor {
	x, mask := c.t(0), c.t(1)
	axis := 0
	if c.given("axis") {
		axis = c.axis(c.int("axis", 0), c.rank(0))
	} else {
		x = x.Reshape(-1)
	}
	if c.err != nil {
		return nil
	}
	if c.rank(1) != 1 || mask.Len() > x.Dim(axis) {
		c.shapeFail("a condition of shape %v for %v", c.shape(1), c.shape(0))
		return nil
	}
	return x.Take(millrace.NonZero(millrace.Int64, c.ready(mask)).Reshape(-1), axis)
}

func cumSum(c *call) *tensor {
	x := c.t(0)
	axis := c.axis(c.intScalar(1), c.rank(0))
	if c.err != nil {
		return nil
	}
	back := c.int("reverse", 0) != 0
	if back {
		x = x.Flip(axis)
	}
	y := x.CumSum(axis)
	if c.int("exclusive", 0) != 0 && c.shape(0)[axis] > 0 {
		pads := make([]millrace.Padding, c.rank(0))
		pads[axis] = millrace.Padding{Before: 1, After: -1}
		y = y.Pad(0, pads...)
	}
	if back {
		y = y.Flip(axis)
	}
	return y
}

// flatIndex turns tuples of indices, the last dimension of index, into places of the dimensions in
// row-major order. Negative indices count from the end.
func (c *call) flatIndex(index *tensor, dims []int) *tensor {
	axis := index.Rank() - 1
	flat := millrace.ZerosOn(c.f.r.place, index.DType())
	for k, d := range dims {
		ranges := make([]millrace.Range, axis+1)
		ranges[axis] = millrace.At(k)
		i := index.Slice(ranges...)
		i = millrace.Where(i.LtScalar(0), i.AddScalar(float64(d)), i)
		// What is out of range stays so: the place is below 0.
		ok := i.GeScalar(0).And(i.LtScalar(float64(d)))
		if k > 0 {
			ok = ok.And(flat.GeScalar(0))
		}
		flat = millrace.WhereScalar(ok, flat.MulScalar(float64(d)).Add(i), -1)
	}
	return flat
}

func gatherND(c *call) *tensor {
	x, index, batch := c.t(0), c.t(1), c.int("batch_dims", 0)
	xd, id := c.shape(0), c.shape(1)
	if c.err != nil || len(id) == 0 {
		c.shapeFail("indices without dimensions")
		return nil
	}
	n := id[len(id)-1]
	if batch < 0 || batch >= len(id) || n < 1 || batch+n > len(xd) || !slices.Equal(xd[:batch], id[:batch]) {
		c.shapeFail("indices of shape %v for %v with %d batch dimensions", id, xd, batch)
		return nil
	}
	b, rest := product(xd[:batch]), xd[batch+n:]
	flat := c.flatIndex(index, xd[batch:batch+n]).Reshape(b, -1)
	size := product(xd[batch : batch+n])
	rows := x.Reshape(b*size, product(rest))
	if b > 1 {
		base := millrace.ArangeOn(c.f.r.place, flat.DType(), 0, float64(b), 1).MulScalar(float64(size)).Reshape(b, 1)
		flat = millrace.WhereScalar(flat.GeScalar(0), flat.Add(base), -1)
	}
	return rows.Take(flat.Reshape(-1), 0).Reshape(slices.Concat(id[:len(id)-1], rest)...)
}

// combines maps an attribute reduction.
var combines = map[string]millrace.Combine{
	"none": millrace.CombineSet, "add": millrace.CombineAdd, "mul": millrace.CombineMul,
	"max": millrace.CombineMax, "min": millrace.CombineMin,
}

func (c *call) combine() millrace.Combine {
	how, ok := combines[c.str("reduction", "none")]
	if !ok {
		c.fail("%w: reduction %q", millrace.ErrUnsupported, c.str("reduction", ""))
	}
	return how
}

// scatterElements updates a part of the tensor: the updates may be shorter along every dimension.
// gatherElements has a result of the indices' shape. What the indices do not reach is cut off.
func gatherElements(c *call) *tensor {
	x, index := c.t(0), c.t(1)
	dims, id := c.shape(0), c.shape(1)
	axis := c.axis(c.int("axis", 0), len(dims))
	part := c.reached(dims, id, axis)
	if c.err != nil {
		return nil
	}
	return x.Slice(part...).TakeAlong(index, axis, fromEnd)
}

// reached is the part of an array that indices with fewer elements on other axes reach.
func (c *call) reached(dims, id []int, axis int) []millrace.Range {
	part := make([]millrace.Range, len(dims))
	for d := range dims {
		if len(id) != len(dims) || d != axis && id[d] > dims[d] {
			c.shapeFail("indices %v for %v", id, dims)
			return nil
		}
		if d != axis && id[d] < dims[d] {
			part[d] = millrace.R(0, id[d])
		}
	}
	return part
}

func scatterElements(c *call) *tensor {
	x, index, updates := c.t(0), c.t(1), c.t(2)
	dims, id := c.shape(0), c.shape(1)
	axis := c.axis(c.int("axis", 0), len(dims))
	how := c.combine()
	if len(id) != len(dims) || !slices.Equal(id, c.shape(2)) {
		c.shapeFail("indices %v and updates %v for %v", id, c.shape(2), dims)
	}
	if c.err != nil {
		return nil
	}
	part := c.reached(dims, id, axis)
	if c.err != nil {
		return nil
	}
	if !slices.ContainsFunc(part, func(r millrace.Range) bool { return r != millrace.All }) {
		return x.Scatter(index, updates, axis, how, fromEnd)
	}
	return x.Assign(x.Slice(part...).Scatter(index, updates, axis, how, fromEnd), part...)
}

func scatterND(c *call) *tensor {
	x, index, updates := c.t(0), c.t(1), c.t(2)
	xd, id := c.shape(0), c.shape(1)
	how := c.combine()
	if c.err != nil || len(id) == 0 {
		c.shapeFail("indices without dimensions")
		return nil
	}
	n := id[len(id)-1]
	if n < 1 || n > len(xd) || !slices.Equal(c.shape(2), slices.Concat(id[:len(id)-1], xd[n:])) {
		c.shapeFail("indices %v and updates %v for %v", id, c.shape(2), xd)
		return nil
	}
	flat := c.flatIndex(index, xd[:n]).Reshape(-1)
	rest := product(xd[n:])
	rows := x.Reshape(product(xd[:n]), rest)
	return rows.Put(flat, updates.Reshape(product(id[:len(id)-1]), rest), 0, how).Reshape(xd...)
}

// oneHot has the values off and on in place of 0 and 1.
func oneHot(c *call) *tensor {
	index, depth := c.t(0), int(c.scalar(1))
	if c.err != nil || depth < 1 {
		c.shapeFail("depth %d", depth)
		return nil
	}
	if isFloat(index.DType()) || !isSigned(index.DType()) {
		index = index.Cast(millrace.Int64)
	}
	index = millrace.Where(index.LtScalar(0), index.AddScalar(float64(depth)), index)
	hot := index.OneHot(millrace.Bool, depth)
	values := c.t(2)
	r := millrace.Where(hot, values.Slice(millrace.At(1)), values.Slice(millrace.At(0)))
	return r.MoveAxis(-1, c.axis(c.int("axis", -1), c.rank(0)+1))
}

func reverseSequence(c *call) *tensor {
	x, dims := c.t(0), c.shape(0)
	batch, time := c.int("batch_axis", 1), c.int("time_axis", 0)
	if len(dims) < 2 || batch+time != 1 || batch*time != 0 {
		c.shapeFail("axes %d and %d of %v", batch, time, dims)
		return nil
	}
	lens := c.t(1).Cast(millrace.Int64)
	if c.rank(1) != 1 || c.shape(1)[0] != dims[batch] {
		c.shapeFail("%v lengths for %v", c.shape(1), dims)
		return nil
	}
	step := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(dims[time]), 1)
	if time == 0 {
		step = step.Reshape(-1, 1)
	} else {
		lens = lens.Reshape(-1, 1)
	}
	index := millrace.Where(step.Lt(lens), lens.SubScalar(1).Sub(step), step)
	if index.Rank() < len(dims) {
		index = index.Reshape(append(index.Shape(), make1(len(dims)-2)...)...)
	}
	return x.TakeAlong(index, time)
}

// make1 is n times 1.
func make1(n int) []int { return slices.Repeat([]int{1}, n) }

// tensorScatter writes the update into a cache, from a position for each row of the batch.
func tensorScatter(c *call) *tensor {
	past, update := c.t(0), c.t(1)
	pd, ud := c.shape(0), c.shape(1)
	axis := c.axis(c.int("axis", -2), len(pd))
	if c.err != nil || len(ud) != len(pd) || axis == 0 {
		c.shapeFail("an update of shape %v for %v", ud, pd)
		return nil
	}
	place := millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(ud[axis]), 1)
	shape := make1(len(pd))
	shape[axis] = ud[axis]
	place = place.Reshape(shape...)
	if c.has(2) {
		starts := make1(len(pd))
		starts[0] = pd[0]
		place = place.Add(c.t(2).Cast(millrace.Int64).Reshape(starts...))
	}
	switch mode := c.str("mode", "linear"); mode {
	case "circular":
		place = place.RemScalar(float64(pd[axis]))
	case "linear":
	default:
		c.fail("mode %q is neither linear nor circular", mode)
	}
	return past.ScatterSet(place.Expand(ud...), update, axis)
}

func topK(c *call) []*value {
	x := c.t(0)
	rank := c.rank(0)
	axis := c.axis(c.int("axis", -1), rank)
	k := c.int("k", 0)
	if c.n.opset >= 10 {
		k = c.intScalar(1)
	}
	if c.err != nil {
		return nil
	}
	if k < 0 || k > c.shape(0)[axis] {
		c.shapeFail("k is %d for dimension %d of %v", k, axis, c.shape(0))
		return nil
	}
	if c.int("largest", 1) != 0 {
		return results(millrace.TopK(x, k, axis))
	}
	first := make([]millrace.Range, rank)
	first[axis] = millrace.R(0, k)
	index := x.ArgSort(axis).Slice(first...)
	return results(x.TakeAlong(index, axis), index)
}

// unique finds the distinct elements, or slices along an axis. It works on the host's order of
// values, so it reads the tensor.
func unique(c *call) []*value {
	x := c.t(0)
	if c.given("axis") {
		c.axis(c.int("axis", 0), c.rank(0))
		if c.rank(0) != 1 {
			return uniqueSlices(c)
		}
	}
	if c.err != nil {
		return nil
	}
	values, inverse, counts := millrace.UniqueAll(millrace.Int64, c.ready(x).Reshape(-1))
	if c.err != nil {
		return nil
	}
	inverse = inverse.Reshape(-1)
	n := x.Len()
	// The first place of each value: the least place of its elements.
	first := millrace.FullOn(c.f.r.place, millrace.Int64, float64(n), values.Len())
	first = first.ScatterMin(inverse, millrace.ArangeOn(c.f.r.place, millrace.Int64, 0, float64(n), 1), 0)
	if c.int("sorted", 1) == 0 {
		order := first.ArgSort(0)
		rank := order.ArgSort(0)
		values, first, counts = values.Take(order, 0), first.Take(order, 0), counts.Take(order, 0)
		inverse = rank.Take(inverse, 0)
	}
	return results(values, first, inverse, counts)
}

// uniqueSlices compares slices along an axis, which it reads.
func uniqueSlices(c *call) []*value {
	x, axis := c.t(0), c.axis(c.int("axis", 0), c.rank(0))
	n := c.shape(0)[axis]
	c.f.r.m.reads.Add(1)
	h, err := readHost(c.f.r.ctx, x.MoveAxis(axis, 0).Reshape(n, -1))
	if err != nil || h.len() == 0 {
		c.fail("%w: slices of %v", cmpErr(err), c.shape(0))
		return nil
	}
	row := func(k int) []float64 {
		w := h.len() / n
		r := make([]float64, w)
		for i := range r {
			r[i] = h.at(k*w + i)
		}
		return r
	}
	order := seq(n)
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(row(a), row(b)) })
	var groups [][]int // equal slices, with the first one in front
	for i, k := range order {
		if i > 0 && slices.Equal(row(k), row(order[i-1])) {
			groups[len(groups)-1] = append(groups[len(groups)-1], k)
		} else {
			groups = append(groups, []int{k})
		}
	}
	if c.int("sorted", 1) == 0 {
		slices.SortFunc(groups, func(a, b []int) int { return a[0] - b[0] })
	}
	first, counts := newHost(millrace.Int64, []int{len(groups)}), newHost(millrace.Int64, []int{len(groups)})
	inverse := newHost(millrace.Int64, []int{n})
	for g, list := range groups {
		first.i[g], counts.i[g] = int64(list[0]), int64(len(list))
		for _, k := range list {
			inverse.i[k] = int64(g)
		}
	}
	values := x.Take(millrace.FromSliceOn(c.f.r.place, first.i), axis)
	return []*value{device(values), onHost(first), onHost(inverse), onHost(counts)}
}

func cmpErr(err error) error {
	if err != nil {
		return err
	}
	return millrace.ErrShape
}
