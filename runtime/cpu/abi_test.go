package cpu

import (
	"os"
	"testing"

	"github.com/millrace-go/millrace/codegen/cgo"
)

// Printed kernels and the walker must agree on abi.h. Go embeds no file from
// outside a package's folder, so there are two copies of it.
func TestOneABI(t *testing.T) {
	mine, err := os.ReadFile("abi.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(mine) != cgo.ABI {
		t.Error("runtime/cpu/abi.h and codegen/cgo/abi.h differ")
	}
}
