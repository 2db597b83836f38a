package asmtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/native"
)

var (
	instruction = regexp.MustCompile(`^\s*[0-9a-f]+:\s+(.*?)\s*$`)
	numbers     = regexp.MustCompile(`0x[0-9a-f]+|\b[0-9]+\b`)
)

// Disassemble returns the text of each instruction of code, by the first of the named programs that
// exists. It skips the test if none does.
func Disassemble(t *testing.T, code []byte, programs []string, options ...string) (list []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-D", "-b", "binary", "--no-show-raw-insn"}, append(options, path)...)
	var out []byte
	err := exec.ErrNotFound
	for _, name := range programs {
		if out, err = exec.Command(name, args...).Output(); err == nil {
			break
		}
	}
	if err != nil && os.Getenv("MILLRACE_REQUIRE") != "" {
		t.Fatalf("%v: %v", programs, err)
	}
	if err != nil {
		t.Skipf("needs %v (Debian: binutils, binutils-aarch64-linux-gnu): %v", programs, err)
	}
	for _, l := range strings.Split(string(out), "\n") {
		if m := instruction.FindStringSubmatch(l); m != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// Decimal writes all numbers of a text as decimal ones.
func Decimal(s string) string {
	return numbers.ReplaceAllStringFunc(s, func(n string) string {
		x, _ := strconv.ParseUint(n, 0, 64)
		return fmt.Sprint(int64(x))
	})
}

// Mem is a random operand in memory.
func Mem(rng *rand.Rand) native.Mem {
	m := native.Mem{Base: native.GPR(rng.IntN(16)), Index: native.NoReg, Scale: 1}
	switch rng.IntN(4) {
	case 0:
		m.Disp = int32(rng.IntN(16) * 64)
	case 1:
		m.Disp = int32(rng.IntN(1<<12)) - 1<<11
	case 2:
		m.Disp = int32(rng.IntN(1 << 20))
	}
	if rng.IntN(2) == 0 {
		m.Index, m.Scale = native.GPR(rng.IntN(16)), 1<<rng.IntN(4)
		if m.Index == native.RSP {
			m.Index = native.RAX
		}
	}
	return m
}
