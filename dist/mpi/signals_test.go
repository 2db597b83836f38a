//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace/dist/internal/launcher"
)

func init() { programs["signals"] = takeSignals }

// TestSignals: with the library in the process a nil dereference is a panic that can be recovered,
// SIGTERM arrives at signal.Notify whichever thread gets it, and the CPU profile has samples.
func TestSignals(t *testing.T) { each(t, "signals", []int{2}) }

func takeSignals() error {
	d, err := opened()
	if err != nil {
		return err
	}
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return err
	}
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	for round := range 20 {
		if err := recovers(); err != nil {
			return err
		}
		threads, err := filepath.Glob("/proc/self/task/*")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(filepath.Base(thread))
			if _, _, e := syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(id), uintptr(syscall.SIGTERM)); e == syscall.ESRCH {
				continue // it has ended
			} else if e != 0 {
				return e
			}
			select {
			case <-terms:
			case <-time.After(time.Minute):
				return fmt.Errorf("SIGTERM of thread %d did not arrive", id)
			}
		}
		p, check, err := allToAll(d, 50_000, round)
		if err != nil {
			return err
		}
		if err := wait(d, p); err != nil {
			return err
		}
		if err := check(); err != nil {
			return err
		}
	}
	// Three tenths of a second of processor time, of which the profiler must see something.
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano())
	}
	for start := used(); used()-start < 300*time.Millisecond; {
		busy()
	}
	pprof.StopCPUProfile()
	if profile.Len() < 200 { // an empty one has about 120 bytes
		return fmt.Errorf("the profile has %d bytes", profile.Len())
	}
	finish(d, "signals")
	return closed(d)
}

// busy needs the processor.
func busy() {
	n := 0
	for i := range 1_000_000 {
		n += i * i
	}
	runtime.KeepAlive(n)
}

// recovers dereferences nil.
func recovers() (err error) {
	defer func() {
		e, ok := recover().(runtime.Error)
		if !ok || !strings.Contains(e.Error(), "nil pointer") {
			err = fmt.Errorf("recovered %v", e)
		}
	}()
	var p *[4]int
	p[1]++
	return fmt.Errorf("nil was dereferenced")
}

func init() { programs["mismatch"] = mismatch }

// TestOtherLauncher: the library of another launcher is an error on all ranks that names both.
func TestOtherLauncher(t *testing.T) {
	if *given != "" {
		t.Skip("only one launcher is given")
	}
	all := jobs(t)
	if len(all) < 2 {
		t.Skip("needs two launchers")
	}
	for name, other := range map[string]*abi{"openmpi": &mpich, "mpich": &openMPI} {
		t.Run(name, func(t *testing.T) {
			out, err := all[name].run(t, "mismatch", 2, "MILLRACE_MPI="+other.name)
			if err != nil || strings.Count(out, "refused") != 2 {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

func mismatch() error {
	_, err := opened()
	if err == nil {
		return fmt.Errorf("opened")
	}
	l := launcher.Find()
	for _, words := range []string{l.By, "2 ranks", "knows only one", "libmpi", "MILLRACE_MPI"} {
		if !strings.Contains(err.Error(), words) {
			return fmt.Errorf("%q does not say %q", err, words)
		}
	}
	os.Stdout.WriteString("refused\n")
	return nil
}
