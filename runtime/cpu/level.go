package cpu

import "github.com/millrace-go/millrace/codegen/cgo"

// levelNames are the ISA levels that C of generated packages is compiled for; a higher
// number is better.
var levelNames = [ShipLevels]string{"portable", "avx2", "avx512"}

// levelISAs are what kernels are printed for at these levels.
var levelISAs = [ShipLevels]*cgo.ISA{cgo.Portable, cgo.AVX2, cgo.AVX512}
