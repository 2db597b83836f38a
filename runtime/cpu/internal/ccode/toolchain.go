//go:build cgo && unix

package ccode

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

// baseFlags make a compiler follow IEEE 754 strictly. -fwrapv makes signed overflow wrap: printed
// code does not rely on that, but the compiler's own transformations might.
var baseFlags = []string{
	"-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
	"-fwrapv", "-fno-strict-aliasing", "-fPIC", "-shared", "-w",
}

// machineFlags are tried in this order; some compilers lack some of them.
var machineFlags = [][]string{{"-march=native"}, {"-mcpu=native"}, {}}

// errPatience reports a compiler that used up its patience, see Limits.
var errPatience = errors.New("the C compiler is not used any more")

// toolchain is a compiler, its flags and its working directory.
type toolchain struct {
	cc    []string // command, then flags of the user's $CC
	id    string   // see identity
	flags []string
	cache runtime.Cache // nil if there is none
	most  time.Duration // see Limits.Patience
	dir   *workDir      // nil until a file is written
	count int
	vain  time.Duration // compile time since the compiler last made code that loads
	nice  bool          // no launch waits: the program's own threads come first
}

// compilerCommand returns $CC, or the first common compiler on the path.
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

// Find returns the command of the C compiler, "" if there is none.
func Find() string { return strings.Join(compilerCommand(), " ") }

var errNoCompiler = errors.New("no C compiler was found ($CC, cc, gcc, clang)")

func withMachine(n int) []string {
	return append(append([]string(nil), baseFlags...), machineFlags[n]...)
}

// newToolchain finds a compiler and the flags that it accepts.
func newToolchain(ctx context.Context, cfg *Config) (*toolchain, error) {
	t, err := locate(cfg)
	if err != nil {
		return nil, err
	}
	if err := t.tryFlags(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// locate finds a compiler, and the flags that it accepts according to the cache.
func locate(cfg *Config) (*toolchain, error) {
	cc := compilerCommand()
	if cc == nil {
		return nil, fmt.Errorf("%w: %w", runtime.ErrNoDriver, errNoCompiler)
	}
	id, err := identity(cc)
	if err != nil {
		return nil, err
	}
	t := &toolchain{cc: cc, id: id, cache: cfg.Cache, most: cfg.Limits.Patience}
	t.flags = t.knownFlags()
	return t, nil
}

// tryFlags finds flags that the compiler accepts, if they are unknown, by compiling the probe.
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
			t.cache.Put(kindCompiler, t.id, strconv.AppendInt(nil, int64(n), 10)) // the cache counts a failure
		}
		return nil
	}
	t.remove()
	return err
}

// work returns the private directory. The first call makes it.
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

// compile compiles a C text to a shared object and returns its path. Its time counts as vain until
// worked is called.
func (t *toolchain) compile(ctx context.Context, source string) (string, error) {
	left := t.most - t.vain
	if left <= 0 {
		return "", fmt.Errorf("%w: it took %v, and no kernel compiled", errPatience, t.most)
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
	// A driver starts the real compiler as a child: kill the whole group, and do not wait for
	// output that a survivor keeps open.
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
		_ = dir.root.Remove(filepath.Base(obj)) // it may not exist
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("%w: it was killed after %v: %w", errPatience, left, err)
		}
		return "", fmt.Errorf("%s: %w: %s", t.cc[0], err, log.String())
	}
	return obj, nil
}

// worked records that an object of the compiler was loaded.
func (t *toolchain) worked() { t.vain = 0 }

// niceness is the scheduling priority of compilers that no launch waits for.
const niceness = 10

// calm lowers the priority of a compiler's process group.
func (t *toolchain) calm(pid int) {
	if t.nice {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, pid, niceness) // after an error it runs at normal priority
	}
}

// remove removes the directory.
func (t *toolchain) remove() {
	if t.dir != nil {
		t.dir.remove()
		t.dir = nil
	}
}
