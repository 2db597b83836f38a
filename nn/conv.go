package nn

import (
	"slices"

	"github.com/millrace-go/millrace"
)

// Kernel sets the size of a window for each dimension; it replaces the constructor's size.
func Kernel(n ...int) Option { return Option{kKernel, func(o *settings) { o.kernel = n }} }

// Stride is the distance from one window to the next. Like the options below it takes one number
// for all dimensions, or one for each.
func Stride(n ...int) Option { return Option{kStride, func(o *settings) { o.stride = n }} }

// Pad adds n elements at both ends of a dimension: zeros, except in maxima, where they are below
// all numbers.
func Pad(n ...int) Option { return Option{kPad, func(o *settings) { o.pad = n }} }

// Dilation is the distance from one element of a window to the next.
func Dilation(n ...int) Option { return Option{kDilation, func(o *settings) { o.spread = n }} }

// OutputPad adds elements at the end of what a transposed convolution gives.
func OutputPad(n ...int) Option { return Option{kOutputPad, func(o *settings) { o.outputPad = n }} }

// Groups splits the channels of a convolution into n groups that are convolved separately.
func Groups(n int) Option { return Option{kGroups, func(o *settings) { o.groups = n }} }

const kConv = kNoBias | kWeights | kBiases | kKernel | kStride | kPad | kDilation | kGroups

// Conv is a convolution along one or two dimensions (PyTorch's Conv1d and Conv2d).
type Conv struct {
	Weight  *Param // (out, in/groups, size…)
	Bias    *Param // (out), or nil
	Options millrace.ConvOptions
}

// NewConv1d makes a convolution of (batch, in, length) with kernels of length size. It takes
// [NoBias], [Weights], [Biases], [Stride], [Pad], [Dilation] and [Groups]; weights and biases start
// uniform on ±1/√(in·size/groups). Groups must divide in and out, else results carry
// [millrace.ErrShape].
func NewConv1d(in, out, size int, opts ...Option) *Conv {
	return newConv("conv1d", 1, in, out, size, opts)
}

// NewConv2d makes a convolution of (batch, in, height, width) with kernels of size in both
// dimensions, or of the two sizes in [Kernel]. Otherwise it is like [NewConv1d].
func NewConv2d(in, out, size int, opts ...Option) *Conv {
	return newConv("conv2d", 2, in, out, size, opts)
}

func newConv(name string, dims, in, out, size int, opts []Option) *Conv {
	o := settled(name, opts, kConv)
	kernel, options := o.convolution(name, dims, size)
	o.grouped(name, in, out)
	shape := append([]int{out, in / o.groups}, kernel...)
	l := &Conv{Options: options}
	l.Weight, l.Bias = o.kernels(shape, out)
	return l
}

// Forward returns (batch, out, positions…) for x of shape (batch, in, size…). See
// [millrace.Tensor.Conv] for the positions and errors. The dtype is c's compute dtype. If c has
// none, it is x's, and must be that of Weight, else [millrace.ErrDType].
func (l *Conv) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return withChannels(c, c.Cast(x).Conv(l.Weight.In(c), l.Options), l.Bias)
}

// ConvTranspose is a transposed convolution along one or two dimensions (PyTorch's ConvTranspose1d
// and ConvTranspose2d).
type ConvTranspose struct {
	Weight  *Param // (in, out/groups, size…)
	Bias    *Param // (out), or nil
	Options millrace.ConvOptions
}

// NewConvTranspose1d makes a transposed convolution of (batch, in, length). It takes the options of
// [NewConv1d], and [OutputPad].
func NewConvTranspose1d(in, out, size int, opts ...Option) *ConvTranspose {
	return newConvTranspose("convtranspose1d", 1, in, out, size, opts)
}

// NewConvTranspose2d makes a transposed convolution of (batch, in, height, width). It
// takes the options of [NewConv2d], and [OutputPad].
func NewConvTranspose2d(in, out, size int, opts ...Option) *ConvTranspose {
	return newConvTranspose("convtranspose2d", 2, in, out, size, opts)
}

func newConvTranspose(name string, dims, in, out, size int, opts []Option) *ConvTranspose {
	o := settled(name, opts, kConv|kOutputPad)
	kernel, options := o.convolution(name, dims, size)
	o.grouped(name, in, out)
	shape := append([]int{in, out / o.groups}, kernel...)
	l := &ConvTranspose{Options: options}
	l.Weight, l.Bias = o.kernels(shape, out)
	return l
}

// Forward returns (batch, out, positions…) for x of shape (batch, in, size…). See
// [millrace.Tensor.ConvTranspose] for the positions and errors. Dtypes are as for [Conv.Forward].
func (l *ConvTranspose) Forward(c *Ctx, x *millrace.Tensor) *millrace.Tensor {
	return withChannels(c, c.Cast(x).ConvTranspose(l.Weight.In(c), l.Options), l.Bias)
}

// convolution returns the kernel's sizes and the stride, padding and dilation.
func (o *settings) convolution(name string, dims, size int) (kernel []int, c millrace.ConvOptions) {
	kernel = o.each(name, dims, []int{size}, size)
	if o.has(kKernel) {
		kernel = o.each(name, dims, o.kernel, size)
	}
	c.Stride = o.each(name, dims, o.stride, 1)
	c.Dilation = o.each(name, dims, o.spread, 1)
	for _, n := range o.each(name, dims, o.pad, 0) {
		c.Padding = append(c.Padding, [2]int{n, n})
	}
	if o.has(kOutputPad) {
		c.OutputPadding = o.each(name, dims, o.outputPad, 0)
	}
	if o.groups < 1 {
		o.fault(name, shapeErr("the number of groups %d is below 1", o.groups))
		o.groups = 1
	}
	c.Groups = o.groups
	return kernel, c
}

// grouped reports an error if the groups do not divide the channels.
func (o *settings) grouped(name string, in, out int) {
	if in < 0 || in%o.groups != 0 || out%o.groups != 0 {
		o.fault(name, shapeErr("%d input channels and %d output channels cannot be split into %d groups", in, out, o.groups))
	}
}

// each returns one number per dimension from an option's one or several numbers.
func (o *settings) each(name string, dims int, list []int, usual int) []int {
	switch len(list) {
	case 0:
		return slices.Repeat([]int{usual}, dims)
	case 1:
		return slices.Repeat(list, dims)
	case dims:
		return slices.Clone(list)
	}
	o.fault(name, shapeErr("an option has %d numbers, the layer has %d dimensions", len(list), dims))
	return slices.Repeat([]int{usual}, dims)
}

// kernels draws the parameters of a convolution.
func (o *settings) kernels(shape []int, out int) (weight, bias *Param) {
	usual := initFan(Draw{Shape: shape}.FanIn())
	weight = o.draw(o.weights, usual, shape...)
	if !o.has(kNoBias) {
		bias = o.draw(o.biases, usual, out)
	}
	return weight, bias
}

// withChannels adds a bias to each channel, the second dimension.
func withChannels(c *Ctx, y *millrace.Tensor, bias *Param) *millrace.Tensor {
	if bias == nil {
		return y
	}
	return perChannel(y, bias.In(c), (*millrace.Tensor).Add)
}

// perChannel returns f of y and the vector v along y's second dimension. It returns y if v is nil,
// or if y has no such dimension because it carries an error.
func perChannel(y, v *millrace.Tensor, f func(x, y *millrace.Tensor) *millrace.Tensor) *millrace.Tensor {
	if v == nil || y.Rank() < 2 {
		return y
	}
	wide := channels(v, y.Rank())
	defer drop(wide)
	return f(y, wide)
}

// channels reshapes a vector to lie along the second dimension of a tensor of that rank.
func channels(v *millrace.Tensor, rank int) *millrace.Tensor {
	return v.Reshape(append([]int{v.Len()}, slices.Repeat([]int{1}, rank-2)...)...)
}
