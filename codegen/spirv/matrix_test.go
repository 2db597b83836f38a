package spirv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/golden"
)

// matrixTexts are texts with matrices that Compile takes, for the validator and for FuzzCompile.
const matrixTexts = "testdata/matrices/modules.txt"

// shows are the instructions that differ between modules with matrices and others. Stable
// disassemblers do not know all of them, so the golden texts have their operands as numbers.
var shows = map[uint32]string{
	opCapability: "OpCapability", opMemoryModel: "OpMemoryModel", opTypeFloat: "OpTypeFloat",
	opTypeMatrix: "OpTypeCooperativeMatrixKHR", opMatrixLoad: "OpCooperativeMatrixLoadKHR", opMatrixStore: "OpCooperativeMatrixStoreKHR",
	opMatrixMulAdd: "OpCooperativeMatrixMulAddKHR", opBitcast: "OpBitcast", opFConvert: "OpFConvert", opFAdd: "OpFAdd", opLoad: "OpLoad", opStore: "OpStore",
	opControlBarrier: "OpControlBarrier", opAtomicStore: "OpAtomicStore", opCompositeConstruct: "OpCompositeConstruct",
	opConstant: "OpConstant",
}

// TestMatrices compares the instructions of modules with matrices with golden texts, and validates
// the modules where the validator knows them: stable ones do not. make subgroups runs this test with
// one that does.
func TestMatrices(t *testing.T) {
	validator, dir := tool(t, "spirv-val"), t.TempDir()
	knows := knowsMatrices(t, validator)
	golden.Run(t, "testdata/matrices", map[string]golden.Handler{"compile": func(t *testing.T, c *golden.Case) string {
		mod, err := Compile(c.Input, allFloats, 0)
		if err != nil {
			return "error: " + err.Error()
		}
		if !HasMatrices(mod.Words) || HasMatrices(mod.Words[:6]) {
			t.Error("HasMatrices is wrong")
		}
		if knows {
			if err := validate(t, validator, file(t, dir, fmt.Sprint(c.Line), mod.Words)); err != nil {
				t.Error(err)
			}
		}
		var b strings.Builder
		fmt.Fprintf(&b, "group %d, shared %d, matrices %+v\n", mod.Group, mod.Shared, mod.Matrices)
		for w := mod.Words[5:]; len(w) > 0; w = w[w[0]>>16:] {
			switch op, operands := w[0]&0xffff, w[1:w[0]>>16]; {
			case op == opExtension:
				var name []byte
				for _, x := range operands {
					name = binary.LittleEndian.AppendUint32(name, x)
				}
				fmt.Fprintf(&b, "OpExtension %s\n", bytes.TrimRight(name, "\x00"))
			case shows[op] != "":
				fmt.Fprintln(&b, shows[op], operands)
			}
		}
		return b.String()
	}})
}

// knowsMatrices reports whether a validator knows matrices. With matrices in MILLRACE_REQUIRE it must.
func knowsMatrices(t *testing.T, validator string) bool {
	t.Helper()
	mod, err := Compile("matrices 8 8 8 f16 f32;\nmain groups 8 {\n\tlet matc x = matc(0.0);\n}", Floats{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = validate(t, validator, file(t, t.TempDir(), "knows", mod.Words))
	switch {
	case err == nil:
		return true
	case slices.Contains(strings.Split(os.Getenv("MILLRACE_REQUIRE"), ","), "matrices") || !strings.Contains(err.Error(), "Invalid capability operand"):
		t.Fatal(err)
	}
	t.Log("the validator does not know matrices: modules with them are only compared")
	return false
}
