//go:build openblas && cgo

package contract

/*
#cgo LDFLAGS: -lopenblas
void openblas_set_num_threads(int);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
*/
import "C"

import "unsafe"

// sgemm calls OpenBLAS for dense row-major matrices; with transposed, y is stored as (n,k). Only
// benchmarks built with the tag openblas have it.
func sgemm(threads int, transposed bool, m, n, k int64, x, y, out unsafe.Pointer) {
	const rowMajor, asIs, turned = 101, 111, 112
	ty, ldy := C.int(asIs), C.int(n)
	if transposed {
		ty, ldy = turned, C.int(k)
	}
	C.openblas_set_num_threads(C.int(threads))
	C.cblas_sgemm(rowMajor, asIs, ty, C.int(m), C.int(n), C.int(k), 1, (*C.float)(x), C.int(k), (*C.float)(y), ldy, 0, (*C.float)(out), C.int(n))
}
