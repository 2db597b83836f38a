package cgo

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// machines are the compiler's flags for an ISA, by architecture.
var machines = map[string]map[*ISA][]string{
	"amd64": {AVX512: {"-mavx512f", "-mavx2", "-mfma"}, AVX2: {"-mavx2", "-mfma"}, SSE: {"-msse4.1"}, Portable: {}},
	"arm64": {NEON: {}, Portable: {}},
}

func compiler(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no C compiler here")
	return ""
}

// compile gives a text to the compiler with every warning an error.
func compile(t *testing.T, source string, flags ...string) (object string) {
	t.Helper()
	cc, dir := compiler(t), t.TempDir()
	src, obj := filepath.Join(dir, "k.c"), filepath.Join(dir, "k.o")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-ffp-contract=off", "-fno-math-errno",
		"-fno-trapping-math", "-fwrapv", "-fno-strict-aliasing", "-c", "-o", obj, src}, flags...)
	if log, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s\n%s", err, log, source[:min(len(source), 200)])
	}
	return obj
}

// TestCompiles holds all ops on all dtypes, in every class and for every ISA,
// against a compiler that takes warnings for errors.
func TestCompiles(t *testing.T) {
	dtypes := tensorDTypes
	if testing.Short() {
		dtypes = []ir.DType{ir.Uint8, ir.Float32}
	}
	for isa, flags := range machines[runtime.GOARCH] {
		for _, dt := range dtypes {
			t.Run(isa.Name+"/"+dt.String(), func(t *testing.T) {
				t.Parallel()
				k := everyOp(t, dt)
				for c := range codegen.NumAccesses {
					if c != codegen.Contiguous && isa != AVX2 {
						continue
					}
					source, err := Print("mr_kernel", k, classes(k, c), isa)
					if err != nil {
						t.Fatal(err)
					}
					compile(t, source+Probe("mr_probe"), flags...)
				}
			})
		}
	}
}
