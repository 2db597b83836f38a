package onnx

import (
	"math"
	"slices"

	"github.com/millrace-go/millrace"
)

func init() {
	register(
		op{name: "NonMaxSuppression", since: 10, run: nonMaxSuppression, onHost: 1<<2 | 1<<3 | 1<<4},
		op{name: "OptionalGetElement", since: 15, run: func(c *call) []*value { c.dtype(0); return c.in }},
		op{name: "OptionalHasElement", since: 15, run: func(c *call) []*value {
			h := newHost(millrace.Bool, nil)
			if c.has(0) {
				h.i[0] = 1
			}
			return []*value{onHost(h)}
		}},
		op{name: "RoiAlign", since: 10, run: one(roiAlign)},
	)
}

// rect is a box with its least corner first.
type rect struct{ y1, x1, y2, x2 float64 }

func (a rect) area() float64 { return (a.y2 - a.y1) * (a.x2 - a.x1) }

// overlap is the area in both boxes, divided by that in either.
func overlap(a, b rect) float64 {
	w := math.Min(a.x2, b.x2) - math.Max(a.x1, b.x1)
	h := math.Min(a.y2, b.y2) - math.Max(a.y1, b.y1)
	if w <= 0 || h <= 0 || a.area() <= 0 || b.area() <= 0 {
		return 0
	}
	return w * h / (a.area() + b.area() - float64(w*h))
}

// nonMaxSuppression chooses boxes by score, and leaves out those that overlap a chosen one. It
// reads boxes and scores.
func nonMaxSuppression(c *call) []*value {
	boxes, scores := c.h(0), c.h(1)
	bd, sd := c.shape(0), c.shape(1)
	if len(bd) != 3 || bd[2] != 4 || len(sd) != 3 || sd[0] != bd[0] || sd[2] != bd[1] {
		c.shapeFail("boxes %v and scores %v", bd, sd)
	}
	limit, most, least := 0, 0.0, math.Inf(-1)
	if c.has(2) {
		limit = c.intScalar(2)
	}
	if c.has(3) {
		most = c.scalar(3)
	}
	if c.has(4) {
		least = c.scalar(4)
	}
	if c.err != nil {
		return nil
	}
	box := func(batch, i int) rect {
		v := func(k int) float64 { return boxes.at((batch*bd[1]+i)*4 + k) }
		if c.int("center_point_box", 0) != 0 {
			x, y, w, h := v(0), v(1), v(2)/2, v(3)/2
			return rect{y - h, x - w, y + h, x + w}
		}
		return rect{math.Min(v(0), v(2)), math.Min(v(1), v(3)), math.Max(v(0), v(2)), math.Max(v(1), v(3))}
	}
	out := []int64{}
	for batch := range sd[0] {
		for class := range sd[1] {
			score := func(i int) float64 { return scores.at((batch*sd[1]+class)*sd[2] + i) }
			if err := c.f.r.ctx.Err(); err != nil {
				c.fail("%w", err)
				return nil
			}
			order := slices.DeleteFunc(seq(sd[2]), func(i int) bool { return c.has(4) && !(score(i) > least) })
			slices.SortStableFunc(order, func(i, j int) int {
				switch {
				case score(i) > score(j):
					return -1
				case score(i) < score(j):
					return 1
				}
				return 0
			})
			var chosen []rect
			for k, i := range order {
				if err := c.f.r.ctx.Err(); k%64 == 0 && err != nil {
					c.fail("%w", err)
					return nil
				}
				b := box(batch, i)
				if len(chosen) >= limit {
					break
				}
				if !slices.ContainsFunc(chosen, func(a rect) bool { return overlap(a, b) > most }) {
					chosen = append(chosen, b)
					out = append(out, int64(batch), int64(class), int64(i))
				}
			}
		}
	}
	return results(millrace.FromSliceOn(c.f.r.place, out, len(out)/3, 3))
}

// samples are places in an image with the four elements around each, and their weights.
type samples struct {
	places  [4][]int64
	weights [4][]float64
}

// add appends a place. Outside of the image it weighs nothing.
func (s *samples) add(y, x float64, h, w int) {
	inside := y >= -1 && y <= float64(h) && x >= -1 && x <= float64(w)
	y, x = math.Min(math.Max(y, 0), float64(h-1)), math.Min(math.Max(x, 0), float64(w-1))
	y0, x0 := int(y), int(x)
	dy, dx := y-float64(y0), x-float64(x0)
	y1, x1 := min(y0+1, h-1), min(x0+1, w-1)
	at := [4][2]int{{y0, x0}, {y0, x1}, {y1, x0}, {y1, x1}}
	weight := [4]float64{(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}
	for k := range 4 {
		if !inside {
			weight[k] = 0
		}
		s.places[k] = append(s.places[k], int64(at[k][0]*w+at[k][1]))
		s.weights[k] = append(s.weights[k], weight[k])
	}
}

// roiAlign pools the bins of each region. It reads the regions, which decide how many samples a bin
// has.
func roiAlign(c *call) *tensor {
	x, d := c.t(0), c.shape(0)
	rois, batch := c.h(1), c.ints(2)
	oh, ow, ratio := c.int("output_height", 1), c.int("output_width", 1), c.int("sampling_ratio", 0)
	if len(d) != 4 || len(rois.dims) != 2 || rois.dims[1] != 4 || len(batch) != rois.dims[0] || oh < 1 || ow < 1 || oh > 1<<15 || ow > 1<<15 || ratio < 0 || ratio > 1<<10 {
		c.shapeFail("regions %v and batch indices %v for %v", rois.dims, c.shape(2), d)
	}
	if c.err != nil || product(d) == 0 {
		c.shapeFail("regions of shape %v", d)
		return nil
	}
	half := c.n.opset >= 16 && c.str("coordinate_transformation_mode", "half_pixel") == "half_pixel"
	scale, shift := c.float("spatial_scale", 1), 0.0
	if half {
		shift = 0.5
	}
	if len(batch) == 0 {
		return millrace.ZerosOn(c.f.r.place, x.DType(), 0, d[1], oh, ow)
	}
	out, total := make([]*tensor, len(batch)), 0
	for n, b := range batch {
		b = c.axis(b, d[0])
		at := func(k int) float64 { return float64(rois.at(4*n+k)*scale) - shift }
		rw, rh := at(2)-at(0), at(3)-at(1)
		if !half {
			rw, rh = math.Max(rw, 1), math.Max(rh, 1)
		}
		bh, bw := rh/float64(oh), rw/float64(ow)
		ny, nx := ratio, ratio
		if ratio == 0 {
			ny, nx = c.size(math.Max(math.Ceil(bh), 0)), c.size(math.Max(math.Ceil(bw), 0))
		}
		total += c.listed(oh, ow, ny, nx)
		c.listed(total)
		if c.err != nil {
			return nil
		}
		if ny*nx == 0 {
			out[n] = millrace.ZerosOn(c.f.r.place, x.DType(), d[1], oh, ow)
			continue
		}
		var s samples
		for py := range oh {
			for px := range ow {
				for iy := range ny {
					for ix := range nx {
						y := at(1) + float64((float64(py)+(float64(iy)+0.5)/float64(ny))*bh)
						s.add(y, at(0)+float64((float64(px)+(float64(ix)+0.5)/float64(nx))*bw), d[2], d[3])
					}
				}
			}
		}
		out[n] = c.binned(x.Slice(millrace.At(b)).Reshape(d[1], -1), &s).Reshape(d[1], oh, ow)
	}
	return millrace.Stack(0, out...)
}

// binned takes the mean of each bin's samples, or the largest weighted element.
func (c *call) binned(image *tensor, s *samples) *tensor {
	bins := c.int("output_height", 1) * c.int("output_width", 1)
	var r *tensor
	biggest := c.str("mode", "avg") == "max"
	for k := range 4 {
		w := millrace.FromSliceOn(c.f.r.place, s.weights[k]).Cast(image.DType())
		v := image.Take(millrace.FromSliceOn(c.f.r.place, s.places[k]), 1).Mul(w)
		switch {
		case r == nil:
			r = v
		case biggest:
			r = r.Maximum(v)
		default:
			r = r.Add(v)
		}
	}
	r = r.Reshape(image.Dim(0), bins, -1)
	if biggest {
		return r.Max(2)
	}
	return r.Mean(2)
}
