//go:build cgo && unix

package cpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-go/millrace/codegen/cgo"
	"github.com/millrace-go/millrace/runtime"
)

// baseFlags keep a compiler to the letter of IEEE 754. The last but one makes
// signed overflow wrap; printed code does not rely on it, the compiler's own
// transformations might.
var baseFlags = []string{
	"-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
	"-fwrapv", "-fno-strict-aliasing", "-fPIC", "-shared", "-w",
}

// machineFlags are tried in this order; not every compiler knows them.
var machineFlags = [][]string{{"-march=native"}, {"-mcpu=native"}, {}}

// compileTimeout ends a compiler that hangs. A variable for tests.
var compileTimeout = 60 * time.Second

// toolchain is a compiler, its flags and the directory it works in.
type toolchain struct {
	cc    []string // command, then flags of the user's $CC
	flags []string
	dir   *workDir
	count int
}

// compilerCommand is $CC, or the first usual compiler there is.
func compilerCommand() []string {
	if cc := strings.Fields(os.Getenv("CC")); len(cc) > 0 {
		if _, err := exec.LookPath(cc[0]); err == nil {
			return cc
		}
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err := exec.LookPath(name); err == nil {
			return []string{path}
		}
	}
	return nil
}

func findCompiler() string { return strings.Join(compilerCommand(), " ") }

var errNoCompiler = errors.New("no C compiler ($CC, cc, gcc, clang)")

// newToolchain finds a compiler and the flags it takes by compiling the probe.
func newToolchain(ctx context.Context) (*toolchain, error) {
	cc := compilerCommand()
	if cc == nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrNoDriver, errNoCompiler)
	}
	dir, err := newWorkDir()
	if err != nil {
		return nil, err
	}
	t := &toolchain{cc: cc, dir: dir}
	for _, machine := range machineFlags {
		t.flags = append(append([]string(nil), baseFlags...), machine...)
		if _, err = t.compile(ctx, cgo.ABI+cgo.Probe(probeSymbol)); err == nil {
			return t, nil
		}
	}
	dir.remove()
	return nil, err
}

// compile makes a shared object of a C text and returns its path.
func (t *toolchain) compile(ctx context.Context, source string) (string, error) {
	t.count++
	base := filepath.Join(t.dir.path, fmt.Sprintf("k%d", t.count))
	src, obj := base+".c", base+".so"
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		return "", err
	}
	defer os.Remove(src)
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	args := append(append(append([]string(nil), t.cc[1:]...), t.flags...), "-o", obj, src, "-lm")
	cmd := exec.CommandContext(ctx, t.cc[0], args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	// A driver starts the real compiler as a child: the whole group is killed,
	// and output that a survivor holds open is not waited for.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+t.dir.path)
	if err := cmd.Run(); err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("killed after %v: %w", compileTimeout, err)
		}
		return "", fmt.Errorf("%s: %w: %s", t.cc[0], err, strings.TrimSpace(log.String()))
	}
	return obj, nil
}

// remove gives the directory back.
func (t *toolchain) remove() { t.dir.remove() }
