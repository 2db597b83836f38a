package millrace

// FFTN is [FFT] along several axes in turn, or along all axes if none is given: NumPy's and
// PyTorch's fftn. FFTN(re, im, -2, -1) is their fft2. An axis that is given twice is ErrShape,
// and so is a 0-d tensor, because it has no axes.
func FFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("fftn", re, im, axes, fftLine)
}

// IFFTN inverts [FFTN]: NumPy's and PyTorch's ifftn.
func IFFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("ifftn", re, im, axes, ifftLine)
}

// RFFTN is [RFFT] along the last of the axes, then [FFT] along the others: NumPy's and PyTorch's
// rfftn. Along the last axis it returns n/2+1 of the n numbers.
func RFFTN(t *Tensor, axes ...int) (re, im *Tensor) {
	return fourier("rfftn", t, nil, axes, rfftLine)
}

// IRFFTN inverts [RFFTN]: it applies [IFFT] along all axes but the last, then [IRFFT] along the
// last, which makes n real numbers there. It is NumPy's and PyTorch's irfftn.
func IRFFTN(re, im *Tensor, n int, axes ...int) *Tensor {
	return realOf("irfftn", re, im, n, axes)
}
