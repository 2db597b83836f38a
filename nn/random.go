package nn

import (
	"math"

	"github.com/millrace-go/millrace"
)

// Random is where the random numbers of training come from: Philox4x32-10, the same on
// every device. Its state are two tensors, so that a Recording draws other numbers in
// each run, and that a run which goes on from a saved state draws what it would have
// drawn; [Save] and [Load] take a Random as a part. It counts tensors: 2^32 of them may
// be drawn, of up to 2^32 elements each.
type Random struct {
	Counter *Param // a Uint32 number: of the next tensor
	Key     *Param // a Uint32 number, from the seed
}

// NewRandom makes one from a seed. Of the options it takes [On].
func NewRandom(seed uint64, opts ...Option) *Random {
	o := settled("random", opts, 0)
	// Equal keys of two seeds, of which there is one pair in 2^32, leave other counters.
	h := mixed(seed)
	return &Random{Counter: o.number(uint32(h)), Key: o.number(uint32(h >> 32))}
}

// State names the two tensors for [Save] and [Load].
func (r *Random) State() []Named {
	return []Named{{"random.counter", r.Counter}, {"random.key", r.Key}}
}

// mixed spreads a seed's bits over 64, as splitmix64 (Steele, Lea, Flood, 2014) does:
// neighbours have nothing in common.
func mixed(seed uint64) uint64 {
	seed += 0x9e3779b97f4a7c15
	seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	seed = (seed ^ seed>>27) * 0x94d049bb133111eb
	return seed ^ seed>>31
}

// place is where tensors are made that a pass needs: its scope, else beside t.
func (c *Ctx) place(t *millrace.Tensor) millrace.Place {
	if c != nil && c.opt.Scope != nil {
		return c.opt.Scope
	}
	if s := t.Stream(); s != nil {
		return s
	}
	return nil
}

// draw is the number of a tensor among those that the pass draws.
func (c *Ctx) draw() int {
	if c.first != nil && !c.repeat {
		return c.first.draw()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draws++
	return c.draws - 1
}

// Bits are random Uint32 numbers, independent of all others that are drawn.
func (c *Ctx) Bits(shape ...int) *millrace.Tensor {
	const name = "random"
	if c == nil || c.opt.Random == nil {
		return fail(name, errNoRandom)
	}
	r := c.opt.Random
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxUint32/int64(d) {
			return fail(name, shapeErr("%v random numbers", shape))
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

// Uniform are random Float32 numbers on [0, 1), multiples of 2^-24.
func (c *Ctx) Uniform(shape ...int) *millrace.Tensor {
	return c.Bits(shape...).ShrScalar(8).Cast(millrace.Float32).MulScalar(0x1p-24)
}

// Normal are random Float32 numbers of mean 0 and variance 1.
func (c *Ctx) Normal(shape ...int) *millrace.Tensor {
	// On (0, 1], so that the logarithm is finite.
	u := c.Bits(shape...).ShrScalar(8).Cast(millrace.Float32).AddScalar(1).MulScalar(0x1p-24)
	turn := c.Uniform(shape...).MulScalar(2 * math.Pi)
	return u.Log().MulScalar(-2).Sqrt().Mul(turn.Cos())
}

// Bernoulli are random Bool values, true with probability p, to a multiple of 2^-32. A p
// that is no probability is ErrShape.
func (c *Ctx) Bernoulli(p float64, shape ...int) *millrace.Tensor {
	below := math.RoundToEven(p * 0x1p32)
	bits := c.Bits(shape...)
	switch {
	case !(p >= 0 && p <= 1):
		return fail("bernoulli", shapeErr("a probability of %v", p), bits)
	case below > math.MaxUint32:
		return bits.GeScalar(0)
	}
	return bits.LtScalar(below)
}
