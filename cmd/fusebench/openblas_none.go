//go:build !(openblas && cgo)

package main

// haveBLAS says that this program is linked with OpenBLAS, which it is not.
const haveBLAS = false

// openBLAS is never called without haveBLAS.
func (g gemm) openBLAS(threads int, a, b *array) (run func(), result *array) { return func() {}, nil }
