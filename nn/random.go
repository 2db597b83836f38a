package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// Random is the source of random numbers for training: Philox4x32-10 (Salmon and others, 2011), the
// same on every device. Its state is two tensors. A Recording therefore draws other numbers in each
// run, and a run that continues from a saved state draws the numbers that the original run would
// have drawn. [Save] and [Load] take a Random as a part. It counts tensors: at most 2^32 tensors of
// up to 2^32 elements each.
type Random struct {
	Counter *Param // a Uint32 number: the index of the next tensor
	Key     *Param // a Uint32 number, from the seed
}

// NewRandom makes a Random from a seed. It takes the option [On].
func NewRandom(seed uint64, opts ...Option) *Random {
	o := settled("random", opts, 0)
	// One pair of seeds in 2^32 has equal keys; such seeds differ in the counter.
	h := mixed(seed)
	return &Random{Counter: o.number(uint32(h)), Key: o.number(uint32(h >> 32))}
}

// State names the two tensors for [Save] and [Load].
func (r *Random) State() []Named {
	return []Named{{"random.counter", r.Counter}, {"random.key", r.Key}}
}

// mixed hashes a seed to 64 bits by splitmix64 (Steele, Lea, Flood, 2014): similar seeds give
// unrelated results.
func mixed(seed uint64) uint64 {
	seed += 0x9e3779b97f4a7c15
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	return seed ^ seed>>31
}

// place is the place of new tensors of a pass: the pass's scope, else t's stream.
func (c *Ctx) place(t *millrace.Tensor) millrace.Place {
	if c != nil && c.opt.Scope != nil {
		return c.opt.Scope
	}
	if s := t.Stream(); s != nil {
		return s
	}
	return nil
}

// draw returns the index of the next random tensor of the pass.
func (c *Ctx) draw() int {
	if c.first != nil && !c.repeat {
		return c.first.draw()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draws++
	return c.draws - 1
}

// Bits returns random Uint32 numbers of that shape, independent of all other draws. Without
// CtxOptions.Random the result carries an error. A negative dimension, or 2^32 numbers or more, is
// ErrShape.
func (c *Ctx) Bits(shape ...int) *millrace.Tensor {
	const name = "random"
	if c == nil || c.opt.Random == nil {
		return fail(name, errNoRandom)
	}
	r := c.opt.Random
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxUint32/int64(d) {
			return fail(name, shapeErr("random numbers of shape %v cannot be drawn", shape))
		}
		n *= int64(d)
	}
	counter, key := r.Counter.In(c), r.Key.In(c)
	i := c.draw()
	if i > 0 {
		counter = counter.AddScalar(float64(i))
	}
	at := millrace.ArangeOn(c.place(r.Counter.t), millrace.Uint32, 0, float64(n), 1)
	return at.Reshape(shape...).Philox(counter, key)
}

// Uniform returns random Float32 numbers on [0, 1), multiples of 2^-24. Shapes and errors are those
// of [Ctx.Bits].
func (c *Ctx) Uniform(shape ...int) *millrace.Tensor {
	return c.Bits(shape...).ShrScalar(8).Cast(millrace.Float32).MulScalar(0x1p-24)
}

// Normal returns random Float32 numbers of mean 0 and variance 1, by Box and Muller's method. It
// draws two tensors of random bits. Shapes and errors are those of [Ctx.Bits].
func (c *Ctx) Normal(shape ...int) *millrace.Tensor {
	// On (0, 1], where the logarithm is finite.
	u := c.Bits(shape...).ShrScalar(8).Cast(millrace.Float32).AddScalar(1).MulScalar(0x1p-24)
	turn := c.Uniform(shape...).MulScalar(2 * math.Pi)
	return u.Log().MulScalar(-2).Sqrt().Mul(turn.Cos())
}

// Bernoulli returns random Bool values, true with probability p rounded to a multiple of 2^-32. A p
// outside [0, 1] is ErrShape. Shapes and other errors are those of [Ctx.Bits].
func (c *Ctx) Bernoulli(p float64, shape ...int) *millrace.Tensor {
	below := math.RoundToEven(p * 0x1p32)
	bits := c.Bits(shape...)
	switch {
	case !(p >= 0 && p <= 1):
		return fail("bernoulli", shapeErr("probability %v is not between 0 and 1", p), bits)
	case below > math.MaxUint32:
		return bits.GeScalar(0)
	}
	return bits.LtScalar(below)
}
