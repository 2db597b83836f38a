package onnx

import (
	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "AffineGrid", since: 20, run: one(affineGrid), onHost: 1 << 1},
		op{name: "DeformConv", since: 19, run: one(deformConv)},
		op{name: "GridSample", since: 16, run: one(gridSample)},
	)
}

// sampler reads elements between those of a tensor of shape (batch, channels, spatial…).
type sampler struct {
	c       *call
	x       *tensor // (batch, channels, all places)
	dims    []int   // of the spatial axes
	padding string  // zeros, border or reflection
	corners bool    // the border is the middle of the last element, not its edge
}

func (c *call) sampler(x *tensor, padding string, corners bool) *sampler {
	d := x.Shape()
	return &sampler{c, x.Reshape(d[0], d[1], -1), d[2:], padding, corners}
}

// border is where an axis ends.
func (s *sampler) border(axis int) (lo, hi float64) {
	if s.corners {
		return 0, float64(s.dims[axis] - 1)
	}
	return -0.5, float64(s.dims[axis]) - 0.5
}

// reflect mirrors coordinates at the borders of an axis.
func (s *sampler) reflect(p *tensor, axis int) *tensor {
	lo, hi := s.border(axis)
	if hi <= lo {
		return p.MulScalar(0)
	}
	d := p.SubScalar(lo).Abs()
	turns := d.DivScalar(hi - lo).Floor()
	rest := d.Sub(turns.MulScalar(hi - lo))
	return millrace.Where(turns.RemScalar(2).EqScalar(0), rest.AddScalar(lo), rest.ScalarSub(hi))
}

// at reads the elements at whole places: one tensor of shape (batch, places) for each axis.
func (s *sampler) at(places []*tensor) *tensor {
	var flat, inside *tensor
	for axis, p := range places {
		n := float64(s.dims[axis])
		if s.padding == "reflection" {
			p = s.reflect(p, axis).Trunc()
		}
		if s.padding == "zeros" {
			ok := p.GeScalar(0).And(p.LtScalar(n))
			if inside == nil {
				inside = ok
			} else {
				inside = inside.And(ok)
			}
		}
		p = p.ClampScalar(0, n-1).Cast(millrace.Int64)
		if flat == nil {
			flat = p
		} else {
			flat = flat.MulScalar(n).Add(p)
		}
	}
	v := s.x.TakeAlong(flat.Unsqueeze(1), 2)
	if inside != nil {
		v = millrace.WhereScalar(inside.Unsqueeze(1), v, 0)
	}
	return v
}

// cubicWeights are the weights of four neighbours, by Keys' curve with a = -0.75.
func cubicWeights(t *tensor) []*tensor {
	const a = -0.75
	near := func(x *tensor) *tensor {
		return x.MulScalar(a + 2).SubScalar(a + 3).Mul(x).Mul(x).AddScalar(1)
	}
	far := func(x *tensor) *tensor {
		return x.MulScalar(a).SubScalar(5 * a).Mul(x).AddScalar(8 * a).Mul(x).SubScalar(4 * a)
	}
	return []*tensor{far(t.AddScalar(1)), near(t), near(t.ScalarSub(1)), far(t.ScalarSub(2))}
}

// between reads at coordinates, one tensor of shape (batch, places) for each axis.
func (s *sampler) between(coords []*tensor, mode string) *tensor {
	if mode == "nearest" {
		return s.at(coords)
	}
	lows, weights := make([]*tensor, len(coords)), make([][]*tensor, len(coords))
	first := 0
	for axis, p := range coords {
		lows[axis] = p.Floor()
		part := p.Sub(lows[axis])
		if mode == "cubic" {
			weights[axis], first = cubicWeights(part), -1
		} else {
			weights[axis] = []*tensor{part.ScalarSub(1), part}
		}
	}
	// All neighbours: each axis has its own number in turn.
	var sum *tensor
	places := make([]*tensor, len(coords))
	var walk func(axis int, w *tensor)
	walk = func(axis int, w *tensor) {
		if axis == len(coords) {
			v := s.at(places).Mul(w.Unsqueeze(1))
			if sum == nil {
				sum = v
			} else {
				sum = sum.Add(v)
			}
			return
		}
		for i, next := range weights[axis] {
			places[axis] = lows[axis].AddScalar(float64(first + i))
			if w != nil {
				next = w.Mul(next)
			}
			walk(axis+1, next)
		}
	}
	walk(0, nil)
	return sum
}

func gridSample(c *call) *tensor {
	x, grid := c.t(0), c.t(1)
	xd, gd := c.shape(0), c.shape(1)
	n := len(xd) - 2
	if n < 1 || len(gd) != len(xd) || gd[len(gd)-1] != n || gd[0] != xd[0] || product(xd) == 0 {
		c.shapeFail("a grid of shape %v for %v", gd, xd)
		return nil
	}
	mode := map[string]string{"bilinear": "linear", "bicubic": "cubic"}[c.str("mode", "bilinear")]
	if mode == "" {
		mode = c.str("mode", "")
	}
	corners := c.int("align_corners", 0) != 0
	s := c.sampler(x, c.str("padding_mode", "zeros"), corners)
	if s.padding != "zeros" && s.padding != "border" && s.padding != "reflection" || mode != "linear" && mode != "cubic" && mode != "nearest" {
		c.fail("%w: mode %q, padding %q", millrace.ErrUnsupported, mode, s.padding)
		return nil
	}
	flat := grid.Reshape(gd[0], -1, n)
	coords := make([]*tensor, n)
	for axis := range n { // the grid names the last axis first
		p, size := flat.Slice(millrace.All, millrace.All, millrace.At(n-1-axis)), float64(xd[2+axis])
		if corners {
			p = p.AddScalar(1).DivScalar(2).MulScalar(size - 1)
		} else {
			p = p.AddScalar(1).MulScalar(size).SubScalar(1).DivScalar(2)
		}
		if mode == "nearest" {
			p = p.Round()
		}
		lo, hi := s.border(axis)
		out := p.LtScalar(lo).Or(p.GtScalar(hi))
		switch s.padding {
		case "border":
			p = millrace.Where(out, p.ClampScalar(0, size-1), p)
		case "reflection":
			p = millrace.Where(out, s.reflect(p, axis), p)
			if mode == "nearest" {
				p = p.Trunc()
			}
		}
		coords[axis] = p
	}
	shape := append([]int{xd[0], xd[1]}, gd[1:len(gd)-1]...)
	return s.between(coords, mode).Reshape(shape...)
}

func affineGrid(c *call) *tensor {
	theta, size := c.t(0), c.ints(1)
	n := len(size) - 2
	if n < 2 || n > 3 || c.rank(0) != 3 || c.shape(0)[1] != n || c.shape(0)[2] != n+1 {
		c.shapeFail("a matrix of shape %v for sizes %v", c.shape(0), size)
		return nil
	}
	dims := size[2:]
	parts := make([]*tensor, n+1)
	for axis, d := range dims {
		p := millrace.ArangeOn(c.f.r.place, theta.DType(), 0, float64(d), 1)
		if c.int("align_corners", 0) != 0 {
			p = p.MulScalar(2 / float64(max(d-1, 1))).SubScalar(1)
		} else {
			p = p.MulScalar(2).AddScalar(1).DivScalar(float64(max(d, 1))).SubScalar(1)
		}
		parts[n-1-axis] = p.Reshape(alongShape(n, axis, d)...).Expand(dims...)
	}
	parts[n] = millrace.OnesOn(c.f.r.place, theta.DType(), dims...)
	places := millrace.Stack(n, parts...).Reshape(-1, n+1)
	out := append(append([]int{c.shape(0)[0]}, dims...), n)
	return places.MatMul(theta.Transpose(1, 2)).Reshape(out...)
}

// alongShape is ones but for one axis.
func alongShape(rank, axis, size int) []int {
	shape := make1(rank)
	shape[axis] = size
	return shape
}

// deformConv samples the input at the places of each kernel, moved by the offsets, and contracts
// the samples with the kernels.
func deformConv(c *call) *tensor {
	x, w, offset := c.t(0), c.t(1), c.t(2)
	xd, wd, od := c.shape(0), c.shape(1), c.shape(2)
	groups, moves := c.int("group", 1), c.int("offset_group", 1)
	if len(xd) != 4 || len(wd) != 4 || len(od) != 4 || groups < 1 || moves < 1 || xd[1]%moves != 0 || wd[0]%groups != 0 || xd[1] != wd[1]*groups {
		c.shapeFail("kernels %v and offsets %v for %v", wd, od, xd)
		return nil
	}
	kh, kw, oh, ow := wd[2], wd[3], od[2], od[3]
	if od[1] != moves*kh*kw*2 || od[0] != xd[0] {
		c.shapeFail("offsets of shape %v for kernels of shape %v", od, wd)
		return nil
	}
	win := c.windows(xd, wd[2:], false)
	if c.err != nil {
		return nil
	}
	rows := xd[0] * moves
	offset = offset.Reshape(rows, kh, kw, 2, oh, ow)
	coords := make([]*tensor, 2)
	for axis := range coords {
		k, o := []int{kh, kw}[axis], []int{oh, ow}[axis]
		tap := millrace.ArangeOn(c.f.r.place, x.DType(), 0, float64(k), 1).MulScalar(float64(win[axis].Dilation))
		place := millrace.ArangeOn(c.f.r.place, x.DType(), 0, float64(o), 1).MulScalar(float64(win[axis].Stride)).SubScalar(float64(win[axis].Before))
		move := offset.Slice(millrace.All, millrace.All, millrace.All, millrace.At(axis))
		at := tap.Reshape(alongShape(4, axis, k)...).Add(place.Reshape(alongShape(4, 2+axis, o)...))
		coords[axis] = move.Add(at).Reshape(rows, -1)
	}
	s := c.sampler(x.Reshape(rows, xd[1]/moves, xd[2], xd[3]), "zeros", true)
	v := s.between(coords, "linear").Reshape(rows, xd[1]/moves, kh*kw, oh*ow)
	if c.has(4) {
		v = v.Mul(c.t(4).Reshape(rows, 1, kh*kw, oh*ow))
	}
	v = v.Reshape(xd[0], groups, wd[1]*kh*kw, oh*ow)
	kernels := w.Reshape(groups, wd[0]/groups, -1)
	y := kernels.MatMul(v).Reshape(xd[0], wd[0], oh, ow)
	if c.has(3) {
		y = y.Add(c.along(c.t(3), y, 1))
	}
	return y
}
