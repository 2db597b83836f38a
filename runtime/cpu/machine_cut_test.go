//go:build linux && amd64

package cpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime"
	"github.com/millrace-go/millrace/runtime/cpu/internal/jit"
	"github.com/millrace-go/millrace/runtime/cpu/internal/operands"
)

// cutShort runs a kernel on a mapped file that was truncated.
func cutShort(t *testing.T) {
	t.Helper()
	const n = 1 << 16
	f, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4 * n); err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, 4*n, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	k, err := codegen.Lower(geluKernels()["reference"])
	if err != nil {
		t.Fatal(err)
	}
	p, err := newMachinePhase(&cgo.Unit{Kernel: k, Variant: cgo.Variant{Class: make([]codegen.AccessClass, 2)}}, 2, jit.ISA(), false)
	if err != nil {
		t.Fatal(err)
	}
	a := args{Args: operands.Args{Rank: 1, Dims: [runtime.MaxRank]int64{n}, Scratch: make([]byte, p.scratch())}}
	out := make([]byte, 4*n)
	for _, b := range [][]byte{mem, out} {
		o := operand{Base: unsafe.Pointer(unsafe.SliceData(b))}
		o.Stride[0] = 1
		a.Ops = append(a.Ops, o)
	}
	p.eval(&a, 0, n)
	if err := f.Truncate(8192); err != nil {
		t.Fatal(err)
	}
	p.eval(&a, 0, n)
	t.Error("nothing happened")
}

// TestFileCutShort checks that truncating a mapped file under a kernel causes the same fault as in
// Go code: the end of the process, or a panic if the program asked for one. The stack can be
// unwound, so no "unexpected return pc" hides the cause.
func TestFileCutShort(t *testing.T) {
	if jit.ISA() == nil {
		t.Skip("no machine code here")
	}
	const variable = "MILLRACE_TEST_CUT"
	if os.Getenv(variable) != "" {
		cutShort(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFileCutShort$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err == nil || strings.Contains(text, "unexpected return pc") || !strings.Contains(text, "unexpected fault address") ||
		!strings.Contains(text, "SIGBUS") || !strings.Contains(text, "cutShort") || !strings.Contains(text, "machinePhase).eval") {
		t.Errorf("%v\n%s", err, text)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if x := recover(); x == nil || !strings.Contains(x.(error).Error(), "invalid memory address") && !strings.Contains(x.(error).Error(), "fault") {
			t.Errorf("recovered %v", x)
		}
	}()
	cutShort(t)
}
