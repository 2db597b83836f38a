package cgo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/internal/testing/kernels"
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

// compile compiles a text, with every warning as an error. The last of several optimisation levels
// in flags counts. The usual one is -O1, below which a compiler does not check for uninitialised
// values.
func compile(t *testing.T, source string, flags ...string) (object string) {
	t.Helper()
	cc, dir := compiler(t), t.TempDir()
	src, obj := filepath.Join(dir, "k.c"), filepath.Join(dir, "k.o")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-ffp-contract=off", "-fno-math-errno",
		"-fno-trapping-math", "-fwrapv", "-fno-strict-aliasing", "-c", "-o", obj, src}, flags...)
	if log, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.4000s\n%s", err, log, source[:min(len(source), 200)])
	}
	return obj
}

// TestCompiles compiles all ops on all dtypes, in every class and for every ISA, with warnings as
// errors. Classes differ only in their addresses, and ISAs only in the spelling of primitives. The
// check for uninitialised values takes most of the time and has the same result in all, so it is
// done in one.
func TestCompiles(t *testing.T) {
	dtypes := kernels.DTypes
	if testing.Short() {
		dtypes = []ir.DType{ir.Uint8, ir.Float32}
	}
	for isa, flags := range machines[runtime.GOARCH] {
		for _, dt := range dtypes {
			t.Run(isa.Name+"/"+dt.String(), func(t *testing.T) {
				t.Parallel()
				want := kernels.StorageOps
				if !dt.Storage() {
					want = nil
				}
				k, err := codegen.Lower(kernels.EveryOp(dt, want))
				if err != nil {
					t.Fatal(err)
				}
				for c := range codegen.NumAccesses {
					if c != codegen.Contiguous && isa != AVX2 {
						continue
					}
					source, err := Print("mr_kernel", k, classes(k, c), isa)
					if err != nil {
						t.Fatal(err)
					}
					level := "-O0"
					if c == codegen.Contiguous && (isa == AVX2 || isa == NEON) {
						level = "-O1"
					}
					compile(t, source+Probe("mr_probe"), append([]string{level}, flags...)...)
				}
			})
		}
	}
}

// classes gives every operand the class c.
func classes(k *codegen.Kernel, c codegen.AccessClass) Variant {
	v := Variant{Class: make([]codegen.AccessClass, len(k.Operands)), Guarded: c == codegen.Strided}
	for i := range v.Class {
		v.Class[i] = c
	}
	return v
}

// disassembled compiles a kernel for an ISA of amd64, with contiguous operands, and passes the
// mnemonics of its instructions, and their lines, to see. It needs binutils, which CI must have.
func disassembled(t *testing.T, text string, isa *ISA, see func(mnemonic, line string)) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("needs amd64")
	}
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		if os.Getenv("MILLRACE_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("needs objdump (Debian: binutils)")
	}
	k, err := codegen.Parse(text)
	if err == nil {
		k, err = codegen.Lower(k)
	}
	if err != nil {
		t.Fatal(err)
	}
	source, err := Print("mr_kernel", k, classes(k, codegen.Contiguous), isa)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-d", "--no-show-raw-insn", compile(t, source, machines["amd64"][isa]...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 2 {
			see(f[1], line)
		}
	}
}

// TestVectorOnly disassembles the innermost loop of a kernel. Multiplications, sums, roots and the
// like of one element at a time mean that the compiler has split a vector statement.
func TestVectorOnly(t *testing.T) {
	const text = `in 0 : float32
out 1 : float32
%0 = load 0 : float32
%1 = erf %0 : float32
%2 = exp %1 : float32
%3 = sqrt %2 : float32
%4 = floor %3 : float32
%5 = add %4 %0 : float32
store 1 %5
`
	for _, isa := range []*ISA{AVX2, AVX512} {
		vectors := 0
		disassembled(t, text, isa, func(mnemonic, line string) {
			if scalarArithmetic.MatchString(mnemonic) {
				t.Errorf("%s: %s", isa.Name, line)
			}
			if strings.HasPrefix(mnemonic, "vfmadd") && strings.HasSuffix(mnemonic, "ps") {
				vectors++
			}
		})
		if vectors == 0 {
			t.Errorf("%s: no vector fma", isa.Name)
		}
	}
}

var scalarArithmetic = regexp.MustCompile(`^v?(add|sub|mul|div|sqrt|round|rndscale|max|min|cmp\w*|f(n?m)(add|sub)\d*)s[sd]$`)

// TestLanewiseCompiles compiles loads with guards and through indices, on all dtypes and in every
// class.
func TestLanewiseCompiles(t *testing.T) {
	vectorISA := map[string]*ISA{"amd64": AVX2, "arm64": NEON}[runtime.GOARCH]
	if vectorISA == nil {
		vectorISA = Portable
	}
	for _, dt := range kernels.DTypes {
		k, err := codegen.Parse(strings.ReplaceAll(`in 0 : T
in 1 : int32
in 2 : int64
out 3 : T
out 4 : T
out 5 : T
out 6 : T
%0 = load 1 : int32
%1 = const 3 : int32
%2 = lt %0 %1 : bool
%3 = load 0 %2 : T
%4 = load 2 : int64
%5 = loadat 0 error %0 %2 : T
%6 = loadat 0 clamp %4 : T
%7 = loadat 0 drop %0 : T
store 3 %3
store 4 %5
store 5 %6
store 6 %7
`, "T", dt.String()))
		if err == nil {
			k, err = codegen.Lower(k)
		}
		if err != nil {
			t.Fatal(err)
		}
		// The operand's class does not matter: it is read lane by lane.
		source, err := Print("mr_kernel", k, classes(k, codegen.Contiguous), vectorISA)
		if err != nil {
			t.Fatal(err)
		}
		compile(t, source, machines[runtime.GOARCH][vectorISA]...)
	}
}

// TestStorageVectorOnly checks that no elements are inserted into vectors, or extracted, one at a
// time: 16-bit floats are loaded, converted and stored as whole vectors.
func TestStorageVectorOnly(t *testing.T) {
	for _, dt := range []ir.DType{ir.Float16, ir.BFloat16, ir.Uint16} {
		text := strings.ReplaceAll(`in 0 : dt
in 1 : dt
out 2 : dt
%0 = load 0 : dt
%1 = load 1 : dt
%2 = mul %0 %1 : dt
%3 = add %2 %1 : dt
store 2 %3
`, "dt", dt.String())
		for _, isa := range []*ISA{AVX2, AVX512} {
			widened := 0
			disassembled(t, text, isa, func(mnemonic, line string) {
				switch {
				case strings.HasPrefix(mnemonic, "vpinsr"), strings.HasPrefix(mnemonic, "vpextr"):
					t.Errorf("%v, %s: %s", dt, isa.Name, line)
				case strings.HasPrefix(mnemonic, "vpmovzxwd"):
					widened++
				}
			})
			if widened == 0 {
				t.Errorf("%v, %s: no vector load", dt, isa.Name)
			}
		}
	}
}
