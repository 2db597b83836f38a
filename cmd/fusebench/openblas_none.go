//go:build !(openblas && cgo)

package main

// haveBLAS says that this program is not linked with OpenBLAS.
const haveBLAS = false

// openBLAS is never called without haveBLAS.
func (g gemm) openBLAS(threads int, a, b *array) (run func(), result *array) { return func() {}, nil }
