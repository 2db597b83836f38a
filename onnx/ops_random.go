package onnx

import (
	"hash/fnv"
	"math"

	"github.com/millrace-go/millrace"
)

func init() {
	normal := func(c *call, dt millrace.DType, shape []int) *tensor {
		t := millrace.NormalOn(c.f.r.place, dt, c.seed(), shape...)
		return t.MulScalar(c.float("scale", 1)).AddScalar(c.float("mean", 0))
	}
	uniform := func(c *call, dt millrace.DType, shape []int) *tensor {
		lo, hi := c.float("low", 0), c.float("high", 1)
		return millrace.UniformOn(c.f.r.place, dt, c.seed(), shape...).MulScalar(hi - lo).AddScalar(lo)
	}
	shaped := func(draw func(c *call, dt millrace.DType, shape []int) *tensor) func(c *call) []*value {
		return one(func(c *call) *tensor {
			dt, shape := c.dtypeAttr("dtype", millrace.Float32), c.list("shape")
			if c.err != nil {
				return nil
			}
			return draw(c, dt, shape)
		})
	}
	like := func(draw func(c *call, dt millrace.DType, shape []int) *tensor) func(c *call) []*value {
		return one(func(c *call) *tensor {
			dt, shape := c.dtypeAttr("dtype", c.dtype(0)), c.shape(0)
			if c.err != nil {
				return nil
			}
			return draw(c, dt, shape)
		})
	}
	register(
		op{name: "Bernoulli", since: 15, run: one(func(c *call) *tensor {
			x := c.t(0)
			u := millrace.UniformOn(c.f.r.place, x.DType(), c.seed(), x.Shape()...)
			return u.Lt(x).Cast(c.dtypeAttr("dtype", x.DType()))
		})},
		op{name: "RandomNormal", since: 1, run: shaped(normal)},
		op{name: "RandomNormalLike", since: 1, run: like(normal)},
		op{name: "RandomUniform", since: 1, run: shaped(uniform)},
		op{name: "RandomUniformLike", since: 1, run: like(uniform)},
	)
}

// seed is another number for each node, each run of a model and each call of the node in it. A
// program that runs a model as often as another one draws the same numbers.
func (c *call) seed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(c.n.op + "\x00" + c.n.name))
	for _, name := range c.n.outputs {
		h.Write([]byte("\x00" + name))
	}
	c.f.r.draws++
	seed := h.Sum64() ^ uint64(math.Float64bits(c.float("seed", 0)))
	return seed + uint64(c.f.r.number)<<32 + uint64(c.f.r.draws)
}
