package ccode

import (
	"os"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// TestOneABI checks that the two copies of abi.h are equal: printed kernels and this package must
// agree on it, and Go embeds no file from outside a package's folder.
func TestOneABI(t *testing.T) {
	mine, err := os.ReadFile("abi.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(mine) != cgo.ABI {
		t.Error("runtime/cpu/internal/ccode/abi.h and codegen/cgo/abi.h differ")
	}
}
