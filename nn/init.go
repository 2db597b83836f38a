package nn

import (
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
)

// Init makes the first values of a parameter.
type Init func(d Draw) *millrace.Tensor

// Draw is the request to an [Init]. Equal Draws give equal values, on every device.
type Draw struct {
	Shape []int
	DType millrace.DType
	Seed  uint64

	place millrace.Place
}

// FanIn is the number of inputs that an output depends on, for a weight of shape (outputs, inputs,
// size…). FanOut is the converse.
func (d Draw) FanIn() int { return d.fan(1) }

// FanOut is the number of outputs that depend on an input.
func (d Draw) FanOut() int { return d.fan(0) }

func (d Draw) fan(axis int) int {
	n := 1
	for i, size := range d.Shape {
		if i == axis || i > 1 {
			n *= size
		}
	}
	return n
}

// Full returns a tensor of d's shape and dtype with v everywhere.
func (d Draw) Full(v float64) *millrace.Tensor {
	return millrace.FullOn(d.place, d.DType, v, d.Shape...)
}

// Uniform returns a tensor of d's shape and dtype, with numbers uniform on [lo, hi).
func (d Draw) Uniform(lo, hi float64) *millrace.Tensor {
	u := millrace.UniformOn(d.place, d.DType, d.Seed, d.Shape...)
	scaled := u.MulScalar(hi - lo)
	defer drop(u, scaled)
	return scaled.AddScalar(lo)
}

// Normal returns a tensor of d's shape and dtype, with numbers of a normal distribution.
func (d Draw) Normal(mean, std float64) *millrace.Tensor {
	n := millrace.NormalOn(d.place, d.DType, d.Seed, d.Shape...)
	scaled := n.MulScalar(std)
	defer drop(n)
	if mean == 0 {
		return scaled
	}
	defer drop(scaled)
	return scaled.AddScalar(mean)
}

// matrix returns the error of an Init that needs at least two dimensions, or nil.
func (d Draw) matrix(name string) *millrace.Tensor {
	if len(d.Shape) < 2 {
		return fail(name, shapeErr("the weight needs two or more dimensions, its shape is %v", d.Shape))
	}
	return nil
}

// InitConstant fills with v.
func InitConstant(v float64) Init {
	return func(d Draw) *millrace.Tensor { return d.Full(v) }
}

// InitUniform draws uniform numbers on [lo, hi).
func InitUniform(lo, hi float64) Init {
	return func(d Draw) *millrace.Tensor { return d.Uniform(lo, hi) }
}

// InitNormal draws normal numbers with that mean and standard deviation.
func InitNormal(mean, std float64) Init {
	return func(d Draw) *millrace.Tensor { return d.Normal(mean, std) }
}

// InitXavierUniform draws uniform numbers on ±gain·√(6/(fan in + fan out)) (Glorot and Bengio,
// 2010; PyTorch's xavier_uniform_). The weight needs two dimensions or more.
func InitXavierUniform(gain float64) Init {
	return func(d Draw) *millrace.Tensor {
		if bad := d.matrix("initxavier"); bad != nil {
			return bad
		}
		a := gain * math.Sqrt(6/float64(d.FanIn()+d.FanOut()))
		return d.Uniform(-a, a)
	}
}

// InitXavierNormal draws normal numbers with a deviation of gain·√(2/(fan in + fan out)) (PyTorch's
// xavier_normal_). The weight needs two dimensions or more.
func InitXavierNormal(gain float64) Init {
	return func(d Draw) *millrace.Tensor {
		if bad := d.matrix("initxavier"); bad != nil {
			return bad
		}
		return d.Normal(0, gain*math.Sqrt(2/float64(d.FanIn()+d.FanOut())))
	}
}

// FanMode says which scale He's initialisers preserve: that of activations in the forward pass
// (FanIn), or of gradients in the backward pass (FanOut).
type FanMode bool

// The fan modes.
const (
	FanIn  FanMode = false
	FanOut FanMode = true
)

func (d Draw) by(m FanMode) float64 {
	if m == FanOut {
		return float64(d.FanOut())
	}
	return float64(d.FanIn())
}

// InitHeUniform draws uniform numbers on ±gain·√(3/fan) (He and others, 2015; PyTorch's
// kaiming_uniform_). The gain is [GainReLU] before a ReLU. The weight needs two dimensions or more.
func InitHeUniform(m FanMode, gain float64) Init {
	return func(d Draw) *millrace.Tensor {
		if bad := d.matrix("inithe"); bad != nil {
			return bad
		}
		a := gain * math.Sqrt(3/d.by(m))
		return d.Uniform(-a, a)
	}
}

// InitHeNormal draws normal numbers with a deviation of gain/√fan (PyTorch's kaiming_normal_). The
// weight needs two dimensions or more.
func InitHeNormal(m FanMode, gain float64) Init {
	return func(d Draw) *millrace.Tensor {
		if bad := d.matrix("inithe"); bad != nil {
			return bad
		}
		return d.Normal(0, gain/math.Sqrt(d.by(m)))
	}
}

// Gains of initialisers that make up for the loss of scale in an activation.
const (
	GainLinear = 1.0
	GainReLU   = math.Sqrt2
	GainTanh   = 5.0 / 3
)

// GainLeakyReLU is √(2/(1+slope²)), the gain for a leaky ReLU of that slope.
func GainLeakyReLU(slope float64) float64 { return math.Sqrt(2 / (1 + float64(slope*slope))) }

// InitOrthogonal makes orthogonal rows of length gain, or columns if there are fewer of them (Saxe
// and others, 2013; PyTorch's orthogonal_). The dimensions after the first are joined into one. It
// computes on the host, in Go.
func InitOrthogonal(gain float64) Init {
	return func(d Draw) *millrace.Tensor {
		if bad := d.matrix("initorthogonal"); bad != nil {
			return bad
		}
		rows, cols := d.Shape[0], 1
		for _, n := range d.Shape[1:] {
			cols *= n
		}
		if rows <= 0 || cols <= 0 {
			return d.Full(0)
		}
		few, many := min(rows, cols), max(rows, cols)
		q := orthonormal(d.Seed, few, many)
		data := make([]float64, rows*cols)
		for i := range few {
			for j := range many {
				at := i*cols + j
				if cols < rows {
					at = j*cols + i
				}
				data[at] = gain * q[i][j]
			}
		}
		if d.DType == millrace.Float64 {
			return millrace.FromSliceOn(d.place, data, d.Shape...)
		}
		narrow := make([]float32, len(data))
		for i, v := range data {
			narrow[i] = float32(v)
		}
		t := millrace.FromSliceOn(d.place, narrow, d.Shape...)
		if d.DType == millrace.Float32 {
			return t
		}
		defer drop(t)
		return t.Cast(d.DType)
	}
}

// orthonormal returns n random orthonormal vectors of m elements, m at least n. It runs each
// Gram-Schmidt step twice, which gives float64's full precision.
func orthonormal(seed uint64, n, m int) [][]float64 {
	r := rand.New(rand.NewPCG(seed, mixed(seed)))
	q := make([][]float64, n)
	for i := range q {
		v := make([]float64, m)
		for k := range v {
			v[k] = r.NormFloat64()
		}
		for range 2 {
			for _, u := range q[:i] {
				c := inner(u, v)
				for k := range v {
					v[k] -= float64(c * u[k])
				}
			}
		}
		norm := math.Sqrt(inner(v, v))
		for k := range v {
			v[k] /= norm
		}
		q[i] = v
	}
	return q
}

func inner(a, b []float64) float64 {
	var s float64
	for i := range a {
		s += float64(a[i] * b[i])
	}
	return s
}

// Init gives a parameter new first values, with its shape, dtype and place. It takes the option
// [Seed].
func (p *Param) Init(f Init, opts ...Option) {
	o := settled("init", opts, 0)
	o.on, o.dt = p.t.Stream(), p.t.DType()
	p.t.Set(o.init(f, p.t.Shape()))
}
