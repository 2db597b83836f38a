//go:build cgo && unix

package cpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// compilePatience is how long a compiler is waited for in all, from its start or from
// its last success, until it makes code that loads: once that has gone by nothing is
// compiled any more, so that one which hangs is not waited for at each kernel. A
// variable for tests.
var compilePatience = 60 * time.Second

// errPatience is of a compiler that took all of that in vain.
var errPatience = errors.New("the compiler is given up")

// toolchain is a compiler, its flags and the directory it works in.
type toolchain struct {
	cc    []string // command, then flags of the user's $CC
	id    string   // see identity
	flags []string
	cache runtime.Cache // nil: none
	dir   *workDir      // nil until something is written
	count int
	vain  time.Duration // spent on compilers since one made code that loads
	nice  bool          // nobody waits: the program's own threads come first
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

func withMachine(n int) []string {
	return append(append([]string(nil), baseFlags...), machineFlags[n]...)
}

// newToolchain finds a compiler and the flags it takes.
func newToolchain(ctx context.Context, cache runtime.Cache) (*toolchain, error) {
	t, err := locate(cache)
	if err != nil {
		return nil, err
	}
	if err := t.tryFlags(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// locate finds a compiler, and the flags that the cache knows it to take.
func locate(cache runtime.Cache) (*toolchain, error) {
	cc := compilerCommand()
	if cc == nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrNoDriver, errNoCompiler)
	}
	id, err := identity(cc)
	if err != nil {
		return nil, err
	}
	t := &toolchain{cc: cc, id: id, cache: cache}
	t.flags = t.knownFlags()
	return t, nil
}

// tryFlags finds flags that the compiler takes where none are known, by compiling
// the probe.
func (t *toolchain) tryFlags(ctx context.Context) (err error) {
	if t.flags != nil {
		return nil
	}
	for n := range machineFlags {
		t.flags = withMachine(n)
		var path string
		if path, err = t.compile(ctx, cgo.ABI+cgo.Probe(probeSymbol)); errors.Is(err, errPatience) {
			break
		}
		if err != nil {
			continue
		}
		if _, err = t.dir.take(path); err != nil {
			break
		}
		if t.cache != nil {
			t.cache.Put(kindCompiler, t.id, strconv.AppendInt(nil, int64(n), 10)) // a failure is counted there
		}
		return nil
	}
	t.remove()
	return err
}

// work is the private directory, made when it is first needed.
func (t *toolchain) work() (*workDir, error) {
	if t.dir == nil {
		dir, err := newWorkDir()
		if err != nil {
			return nil, err
		}
		t.dir = dir
	}
	return t.dir, nil
}

// compile makes a shared object of a C text and returns its path. The time that it takes
// is in vain until worked says otherwise.
func (t *toolchain) compile(ctx context.Context, source string) (string, error) {
	left := compilePatience - t.vain
	if left <= 0 {
		return "", fmt.Errorf("%w: it took %v in vain", errPatience, compilePatience)
	}
	begin := time.Now()
	defer func() { t.vain += time.Since(begin) }()
	dir, err := t.work()
	if err != nil {
		return "", err
	}
	t.count++
	base := filepath.Join(dir.path, fmt.Sprintf("k%d", t.count))
	src, obj := base+".c", base+".so"
	if err := dir.root.WriteFile(filepath.Base(src), []byte(source), 0o600); err != nil {
		return "", err
	}
	defer dir.root.Remove(filepath.Base(src))
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	args := append(append(append([]string(nil), t.cc[1:]...), t.flags...), "-o", obj, src, "-lm")
	cmd := exec.CommandContext(ctx, t.cc[0], args...)
	var log logEnds
	cmd.Stdout, cmd.Stderr = &log, &log
	// A driver starts the real compiler as a child: the whole group is killed,
	// and output that a survivor holds open is not waited for.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TMPDIR="+dir.path)
	err = cmd.Start()
	if err == nil {
		t.calm(cmd.Process.Pid)
		err = cmd.Wait()
	}
	if err != nil {
		_ = dir.root.Remove(filepath.Base(obj)) // which need not be there
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("%w: killed after %v: %w", errPatience, left, err)
		}
		return "", fmt.Errorf("%s: %w: %s", t.cc[0], err, log.String())
	}
	return obj, nil
}

// worked notes that an object of the compiler's was loaded.
func (t *toolchain) worked() { t.vain = 0 }

// niceness of compilers that nobody waits for.
const niceness = 10

// calm has a compiler's processes, which are a group, give way to others.
func (t *toolchain) calm(pid int) {
	if t.nice {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, niceness) // else it competes, no more
	}
}

// remove gives the directory back.
func (t *toolchain) remove() {
	if t.dir != nil {
		t.dir.remove()
		t.dir = nil
	}
}
