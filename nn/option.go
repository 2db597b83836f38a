package nn

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync/atomic"

	"github.com/millrace-go/millrace"
)

// Option changes what a constructor makes. Every constructor takes [Seed], [On] and [DType], and
// lists its other options; any other option is an error that the layer carries.
type Option struct {
	kind kind
	set  func(*settings)
}

// kind is a set of options. The options that every constructor takes are not in it.
type kind uint32

const (
	kNoBias kind = 1 << iota
	kWeights
	kBiases
	kKernel
	kStride
	kPad
	kDilation
	kGroups
	kOutputPad
	kEps
	kMomentum
	kPlain
	kPadding
	kDropout
	kCausal
	kRotary
	kLayers
	kBidirectional
	kBatchFirst
	kExclude
)

// kindNames are the options' names, in the order of the bits.
var kindNames = [...]string{"NoBias", "Weights", "Biases", "Kernel", "Stride", "Pad", "Dilation", "Groups", "OutputPad", "Eps", "Momentum",
	"Plain", "PaddingIndex", "DropoutOf", "Causal", "Rotary", "Layers", "Bidirectional", "BatchFirst", "ExcludePadding"}

func (k kind) String() string {
	var names []string
	for ; k != 0; k &= k - 1 {
		names = append(names, kindNames[bits.TrailingZeros32(uint32(k))])
	}
	return strings.Join(names, ", ")
}

// settings collect the values of options.
type settings struct {
	seeds *seeds
	on    millrace.Place
	dt    millrace.DType
	given kind
	bad   *millrace.Tensor // carries the first error, as all parameters then do

	weights, biases             Init
	kernel, stride, pad, spread []int
	outputPad                   []int
	groups, layers, padding     int
	eps, momentum, p, base      float64
}

// settled merges the options of a constructor that takes these kinds.
func settled(name string, opts []Option, takes kind) *settings {
	o := &settings{seeds: &common, dt: millrace.Float32, groups: 1, layers: 1}
	for _, opt := range opts {
		if opt.set == nil {
			o.fault(name, errors.New("an Option was made without a function of package nn"))
			continue
		}
		opt.set(o)
		o.given |= opt.kind
	}
	if o.on == nil {
		d, err := millrace.Default()
		if err != nil {
			o.fault(name, err)
		}
		o.on = d
	}
	if other := o.given &^ takes; other != 0 {
		o.fault(name, fmt.Errorf("the layer does not take the options %v", other))
	}
	if !o.dt.IsFloat() {
		o.fault(name, dtypeErr("%v is not a float dtype", o.dt))
	}
	return o
}

// fault makes the layer carry an error, unless it carries one already.
func (o *settings) fault(name string, err error) {
	if o.bad == nil {
		o.bad = fail(name, err)
	}
}

// usually sets a default if no option has set the value.
func (o *settings) usually(x *float64, k kind, v float64) {
	if !o.has(k) {
		*x = v
	}
}

func (o *settings) has(k kind) bool { return o.given&k != 0 }

// seeds is a sequence of seeds.
type seeds struct {
	base uint64
	n    atomic.Uint64
}

// common is the source of seeds for constructors without a [Seed].
var common = seeds{base: mixed(0)}

func (s *seeds) next() uint64 { return mixed(s.base + s.n.Add(1)) }

// Seed is the source of first values. Pass one Seed to many constructors: each parameter draws
// another number from it. A model built in the same order from the same seed therefore has the same
// weights. Two Seeds of one number give equal weights. Without this option all constructors of the
// process draw from one Seed, the same in every process.
func Seed(n uint64) Option {
	s := &seeds{base: mixed(n)}
	return Option{0, func(o *settings) { o.seeds = s }}
}

// On is the place of the parameters: a device or a stream; the default is the default device. Do
// not pass a scope: it would release the parameters at its end.
func On(p millrace.Place) Option { return Option{0, func(o *settings) { o.on = p }} }

// DType is the float dtype that stores the parameters; the default is Float32. [CtxOptions] set the
// dtype that a pass computes in.
func DType(dt millrace.DType) Option { return Option{0, func(o *settings) { o.dt = dt }} }

// NoBias leaves out the bias.
func NoBias() Option { return Option{kNoBias, func(o *settings) {}} }

// Weights replaces PyTorch's default of the first weights, and Biases that of the first biases.
func Weights(f Init) Option { return Option{kWeights, func(o *settings) { o.weights = f }} }

// Biases replaces PyTorch's default of the first biases.
func Biases(f Init) Option { return Option{kBiases, func(o *settings) { o.biases = f }} }

// Eps is the number that a norm adds to the variance.
func Eps(eps float64) Option { return Option{kEps, func(o *settings) { o.eps = eps }} }

// DropoutOf is the probability with which a layer drops numbers in training; the layer says which
// numbers.
func DropoutOf(p float64) Option { return Option{kDropout, func(o *settings) { o.p = p }} }

// draw makes a parameter by custom, or by usual if custom is nil.
func (o *settings) draw(custom, usual Init, shape ...int) *Param {
	if custom == nil {
		custom = usual
	}
	return NewParam(o.init(custom, shape))
}

// buffer makes a buffer.
func (o *settings) buffer(f Init, shape ...int) *Param { return NewBuffer(o.init(f, shape)) }

func (o *settings) init(f Init, shape []int) *millrace.Tensor {
	if o.bad != nil {
		return o.bad
	}
	return f(Draw{Shape: shape, DType: o.dt, Seed: o.seeds.next(), place: o.on})
}

// counter makes a buffer that counts steps: Int64 as PyTorch's, or Int32 on a device without Int64.
func (o *settings) counter() *Param {
	t := o.bad
	if t == nil {
		t = millrace.ZerosOn(o.on, millrace.Int32)
		if s := t.Stream(); s != nil && s.Device().Supports(millrace.Int64) {
			t = millrace.ZerosOn(o.on, millrace.Int64)
		}
	}
	return NewBuffer(t)
}

// number makes a buffer with one Uint32 number.
func (o *settings) number(v uint32) *Param {
	t := o.bad
	if t == nil {
		t = millrace.ScalarOn(o.on, v)
	}
	return NewBuffer(t)
}
