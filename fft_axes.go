package millrace

// FFTN is [FFT] along several axes, one after another, or along all where none is given: NumPy's
// and PyTorch's fftn. An axis that is given twice, and a 0-d tensor, which has none, are ErrShape.
// FFTN(re, im, -2, -1) is their fft2.
func FFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("fftn", re, im, axes, fftLine)
}

// IFFTN undoes [FFTN].
func IFFTN(re, im *Tensor, axes ...int) (outRe, outIm *Tensor) {
	return fourier("ifftn", re, im, axes, ifftLine)
}

// RFFTN is [RFFT] along the last of the axes, then [FFT] along the others: NumPy's and PyTorch's
// rfftn. It has n/2+1 of the n numbers along the last axis.
func RFFTN(t *Tensor, axes ...int) (re, im *Tensor) {
	return fourier("rfftn", t, nil, axes, rfftLine)
}

// IRFFTN undoes [RFFTN]: [IFFT] along all axes but the last, then [IRFFT] along that, which makes n
// real numbers there. It is NumPy's and PyTorch's irfftn.
func IRFFTN(re, im *Tensor, n int, axes ...int) *Tensor {
	return realOf("irfftn", re, im, n, axes)
}
