package cpu

import "github.com/millrace-go/millrace/codegen/cgo"

// levelNames are the ISA levels that the C of generated packages is compiled for; a higher index
// is better.
var levelNames = [ShipLevels]string{"portable", "avx2", "avx512"}

// levelISAs are the ISAs that kernels are printed for at these levels.
var levelISAs = [ShipLevels]*cgo.ISA{cgo.Portable, cgo.AVX2, cgo.AVX512}
