//go:build openblas && cgo

package main

/*
#cgo LDFLAGS: -lopenblas
void openblas_set_num_threads(int);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);
*/
import "C"

import (
	goruntime "runtime"
	"unsafe"
)

// haveBLAS says that this program is linked with OpenBLAS: go build -tags openblas.
const haveBLAS = true

// openBLAS returns the result's array and a function that multiplies a by b, on as many threads
// as the device has, in aligned memory that was touched before.
func (g gemm) openBLAS(threads int, a, b *array) (run func(), result *array) {
	const rowMajor, asIs = 101, 111
	if threads == 0 {
		threads = goruntime.GOMAXPROCS(0)
	}
	m, k, n := C.int(g.m), C.int(g.k), C.int(g.n)
	if a.f64 != nil {
		x, y, out := alignedCopy(a.f64), alignedCopy(b.f64), alignedCopy(make([]float64, g.m*g.n))
		return func() {
			C.openblas_set_num_threads(C.int(threads))
			C.cblas_dgemm(rowMajor, asIs, asIs, m, n, k, 1, (*C.double)(&x[0]), k, (*C.double)(&y[0]), n, 0, (*C.double)(&out[0]), n)
		}, &array{f64: out}
	}
	x, y, out := alignedCopy(a.f32), alignedCopy(b.f32), alignedCopy(make([]float32, g.m*g.n))
	return func() {
		C.openblas_set_num_threads(C.int(threads))
		C.cblas_sgemm(rowMajor, asIs, asIs, m, n, k, 1, (*C.float)(&x[0]), k, (*C.float)(&y[0]), n, 0, (*C.float)(&out[0]), n)
	}, &array{f32: out}
}

// alignedCopy returns a copy of x that starts at a cache line.
func alignedCopy[T float32 | float64](x []T) []T {
	size := int(unsafe.Sizeof(x[0]))
	b := aligned(len(x) * size)
	s := unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(x))
	copy(s, x)
	return s
}
