package nn

import "github.com/millrace-go/millrace"

// ExcludePadding makes an average ignore padding. By default padding counts as 0.
func ExcludePadding() Option { return Option{kExclude, func(o *settings) {}} }

// Pool takes the maximum or the mean of windows that move along the last dimensions.
type Pool struct {
	name    string
	windows []millrace.Window
	pads    []millrace.Padding // zeros that count in the mean, if any
	max     bool
	bad     *millrace.Tensor
}

// NewMaxPool2d makes a Pool of maxima (PyTorch's MaxPool2d). The default stride is the window's
// size. It takes [Kernel], [Stride], [Pad], whose elements are below all numbers, and [Dilation].
func NewMaxPool2d(size int, opts ...Option) *Pool {
	return newPool("maxpool2d", 2, size, true, kKernel|kStride|kPad|kDilation, opts)
}

// NewMaxPool1d is [NewMaxPool2d] along one dimension.
func NewMaxPool1d(size int, opts ...Option) *Pool {
	return newPool("maxpool1d", 1, size, true, kKernel|kStride|kPad|kDilation, opts)
}

// NewAvgPool2d makes a Pool of means (PyTorch's AvgPool2d). The default stride is the window's
// size. It takes [Kernel], [Stride], [Pad] and [ExcludePadding].
func NewAvgPool2d(size int, opts ...Option) *Pool {
	return newPool("avgpool2d", 2, size, false, kKernel|kStride|kPad|kExclude, opts)
}

// NewAvgPool1d is [NewAvgPool2d] along one dimension.
func NewAvgPool1d(size int, opts ...Option) *Pool {
	return newPool("avgpool1d", 1, size, false, kKernel|kStride|kPad|kExclude, opts)
}

func newPool(name string, dims, size int, max bool, takes kind, opts []Option) *Pool {
	o := settled(name, opts, takes)
	l := &Pool{name: name, max: max}
	kernel, c := o.convolution(name, dims, size)
	stride := kernel // windows are adjacent
	if o.has(kStride) {
		stride = c.Stride
	}
	for i, n := range kernel {
		w := millrace.Window{Size: n, Stride: stride[i], Dilation: c.Dilation[i], Before: c.Padding[i][0], After: c.Padding[i][1]}
		if !max && !o.has(kExclude) && w.Before+w.After > 0 {
			l.pads = append(l.pads, millrace.Padding{Before: w.Before, After: w.After})
			w.Before, w.After = 0, 0
		} else {
			l.pads = append(l.pads, millrace.Padding{})
		}
		l.windows = append(l.windows, w)
		// As in PyTorch: no window consists of padding alone.
		if 2*c.Padding[i][0] > n {
			o.fault(name, shapeErr("windows of %d elements have a padding of %d, which must be at most half of them", n, c.Padding[i][0]))
		}
	}
	l.bad = o.bad
	return l
}

// Forward returns (batch, channels, positions…) for x of shape (batch, channels, size…). The dtype
// is x's: numbers for maxima, floats for means, else [millrace.ErrDType]. A rank below the number
// of windows is [millrace.ErrShape], and so is a window larger than the padded size.
func (l *Pool) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	switch {
	case l.bad != nil:
		return fail(l.name, errNoParam, l.bad)
	case len(l.windows) == 0 || x.Rank() < len(l.windows):
		return fail(l.name, shapeErr("%v does not fit windows of %d dimensions", x.Shape(), len(l.windows)), x)
	case l.max:
		return x.MaxPool(l.windows...)
	}
	for _, p := range l.pads {
		if p != (millrace.Padding{}) {
			x = x.Pad(0, l.pads...)
			break
		}
	}
	return x.AvgPool(l.windows...)
}

// GlobalAvgPool is the mean of each channel, the second dimension.
type GlobalAvgPool struct{}

// Forward returns (batch, channels) for x of shape (batch, channels, …); a rank below 3 is
// [millrace.ErrShape]. The dtype is x's; floats only, else [millrace.ErrDType].
func (GlobalAvgPool) Forward(_ *Ctx, x *millrace.Tensor) *millrace.Tensor {
	if x.Rank() < 3 {
		return fail("globalavgpool", shapeErr("%v does not have a batch, channels and positions", x.Shape()), x)
	}
	var axes []int
	for i := 2; i < x.Rank(); i++ {
		axes = append(axes, i)
	}
	return x.Mean(axes...)
}
