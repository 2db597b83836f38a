//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/millrace-go/millrace/internal/testing/mpirun"
)

// thorough makes many faults, of more kinds of jobs. It takes about half an hour.
var thorough = os.Getenv("MILLRACE_LONG") != ""

// faults is the number of faults of each kind under each launcher.
var faults = map[bool]int{false: 2, true: 50}[thorough]

// A fault is a signal to a process of a job, at a random moment of it.
type fault struct {
	signal   syscall.Signal
	launcher bool // the process is the launcher, else a random one of a rank
	goRun    bool // ranks are started by go run
}

// faulty makes jobs of a training, and counts what faults did to them.
type faulty struct {
	t         *testing.T
	launchers []mpirun.Launcher
	want      map[string]string        // digests of trainings that nothing happened to, by lesson
	takes     map[string]time.Duration // how long a job takes, by lesson, launcher and go run
	counts    map[string]int           // of what happened, by launcher
	longest   map[string]time.Duration // from a fault to the end of the job, by launcher
}

// long are lessons with checkpoints on the way.
var long = map[string][]string{
	"mlp": {"-digest", "-model", "mlp", "-steps", "300", "-every", "20"},
	"gpt": {"-digest", "-model", "gpt", "-steps", "40", "-batch", "8", "-every", "5"},
}

// program is how a rank is started.
func program(goRun bool, args []string) (env, command []string) {
	if goRun {
		return nil, slices.Concat([]string{"go", "run", "."}, args)
	}
	return []string{asProgram + "=1"}, slices.Concat([]string{os.Args[0]}, args)
}

// TestKilled: a process of a rank, or the launcher, is killed at a random moment. The job ends, no
// process is left, and the training goes on to the result of one that was not killed.
func TestKilled(t *testing.T) { signals(t, syscall.SIGKILL) }

// TestAsked: the same with SIGTERM. If it comes when the ranks have met, they make a last checkpoint.
func TestAsked(t *testing.T) { signals(t, syscall.SIGTERM) }

// signals sends a signal to jobs of all kinds.
func signals(t *testing.T, signal syscall.Signal) {
	f := begin(t)
	for i := range faults {
		for _, l := range f.launchers {
			f.once(l, fault{signal, i%4 == 1, i%5 == 4})
		}
	}
	f.report()
}

// TestSuspended: a process of a rank is stopped by SIGSTOP. The others name it after the Deadline.
func TestSuspended(t *testing.T) {
	if !thorough {
		t.Skip("it waits for deadlines; MILLRACE_LONG runs it, and dist/mpi's TestStopped is always run")
	}
	f := begin(t)
	for range 5 {
		for _, l := range f.launchers {
			f.once(l, fault{signal: syscall.SIGSTOP})
		}
	}
	f.report()
}

func begin(t *testing.T) *faulty {
	f := &faulty{t: t, launchers: mpirun.Launchers(t), want: map[string]string{}, takes: map[string]time.Duration{}, counts: map[string]int{}, longest: map[string]time.Duration{}}
	if !thorough {
		delete(long, "gpt")
	}
	for lesson, args := range long {
		if f.want[lesson] = digestOf(complete(t, alone, 1, args...)); f.want[lesson] == "" {
			t.Fatal("no digest")
		}
	}
	return f
}

func (f *faulty) report() {
	for _, what := range slices.Sorted(maps.Keys(f.counts)) {
		f.t.Logf("%s: %d", what, f.counts[what])
	}
	f.t.Logf("the longest time from a fault to the end of the job: %v", f.longest)
}

// once has one fault come true, and then completes the training.
func (f *faulty) once(l mpirun.Launcher, x fault) {
	f.t.Helper()
	lesson, n := "mlp", 2
	if thorough {
		lesson, n = []string{"mlp", "mlp", "gpt"}[rand.IntN(3)], []int{2, 2, 4}[rand.IntN(3)]
	}
	for hit := false; !hit && !f.t.Failed(); {
		file := filepath.Join(f.t.TempDir(), "checkpoint")
		// Of MPICH's ranks, one whose go run was killed works until the others have left, and then
		// waits for them until the deadline.
		deadline := "30s"
		if x.signal == syscall.SIGSTOP {
			deadline = "5s"
		}
		args := slices.Concat(long[lesson], []string{"-save", file, "-deadline", deadline})
		hit = f.try(l, x, n, lesson, args)
		f.resume(lesson, args)
		if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
			f.t.Errorf("beside the checkpoint: %v, %v", entries, err)
		}
	}
}

// try starts a job, and sends the signal. It returns false if the job had ended before.
func (f *faulty) try(l mpirun.Launcher, x fault, n int, lesson string, args []string) bool {
	t := f.t
	kind := fmt.Sprint(l.Name, n, lesson, x.goRun)
	env, command := program(x.goRun, args)
	begun := time.Now()
	j := l.Start(t, n, env, command...)
	if f.takes[kind] == 0 { // the first one is not disturbed
		out, err := j.Wait()
		if f.takes[kind] = time.Since(begun); err != nil || digestOf(out) != f.want[lesson] {
			t.Errorf("%s: %v, want digest %s\n%s", kind, err, f.want[lesson], out)
		}
		return false
	}
	select {
	case <-j.Ended():
	case <-time.After(rand.N(f.takes[kind])):
	}
	victim := f.victim(j, x)
	if victim == nil || syscall.Kill(victim.PID, x.signal) != nil {
		j.Wait()
		f.takes[kind] = time.Since(begun) // the machine is less busy now
		return false
	}
	sent := time.Now()
	select {
	case <-j.Ended():
	case <-time.After(2 * time.Minute):
		t.Errorf("%s: the job does not end after %v to %+v", kind, x.signal, *victim)
		j.Kill()
	}
	took := time.Since(sent)
	out, err := j.Wait()
	if left := j.Left(time.Minute); len(left) > 0 {
		t.Errorf("%s: after %v to %+v there are left: %+v\n%s", kind, x.signal, *victim, left, out)
		j.Kill()
	}
	digest, asked := digestOf(out), strings.Contains(out, "stopped by SIGTERM after step ")
	what := "ended" // the job
	switch {
	case digest != "": // too late
		if digest != f.want[lesson] {
			t.Errorf("%s: digest %s, want %s\n%s", kind, digest, f.want[lesson], out)
		}
		return false
	case x.signal == syscall.SIGTERM && asked:
		// Open MPI's mpirun and go run end with an error of their own when they are asked.
		if err != nil && !x.launcher && !x.goRun {
			t.Errorf("%s: stopped, but %v\n%s", kind, err, out)
		}
		what = "made a last checkpoint"
	case err == nil && !x.launcher: // mpiexec.hydra ends with 0 when it is asked
		t.Errorf("%s: the job ended well after %v to %+v\n%s", kind, x.signal, *victim, out)
	case x.signal == syscall.SIGTERM:
		what = "ended before the ranks had met"
	case strings.Contains(out, "the other ranks have not joined"):
		what = "ended before the ranks had met"
	case x.signal == syscall.SIGSTOP:
		if what = "ended and named the rank"; !strings.Contains(out, "dist: rank "+victim.Rank+" (") {
			t.Errorf("%s: nobody names rank %s\n%s", kind, victim.Rank, out)
		}
	}
	f.longest[l.Name] = max(f.longest[l.Name], took.Round(time.Millisecond))
	of := "a rank"
	if x.launcher {
		of = "the launcher"
	}
	if x.goRun {
		of += " by go run"
	}
	f.counts[fmt.Sprintf("%s, the signal to %s, the job %s", l.Name, of, what)]++
	return true
}

// victim is the process of a job that gets the signal; nil if the job has none of that kind.
func (f *faulty) victim(j *mpirun.Job, x fault) *mpirun.Process {
	var of []mpirun.Process
	for _, p := range j.Processes() {
		isGo := filepath.Base(p.Program) == "go"
		switch {
		case x.launcher && p.PID == j.PID():
			of = append(of, p)
		case !x.launcher && p.Rank != "" && (x.signal == syscall.SIGKILL || !isGo): // go run ends by SIGTERM alone
			of = append(of, p)
		}
	}
	if len(of) == 0 {
		return nil
	}
	return &of[rand.IntN(len(of))]
}

// resume completes the training with another number of ranks.
func (f *faulty) resume(lesson string, args []string) {
	t := f.t
	l, n := alone, 1
	if rand.IntN(2) == 0 {
		l, n = f.launchers[rand.IntN(len(f.launchers))], []int{1, 2, 4}[rand.IntN(3)]
	}
	out := complete(t, l, n, append(slices.Clone(args), "-deadline", "5m")...)
	if got := digestOf(out); got != f.want[lesson] {
		t.Errorf("resumed by %d ranks of %q: digest %s, want %s\n%s", n, l.Name, got, f.want[lesson], out)
	}
	if strings.Contains(out, "going on after step ") {
		f.counts["went on from a checkpoint"]++
	}
}

// TestFull: a checkpoint that cannot be written is an error of all ranks. The last one stays, and the
// training goes on from it.
func TestFull(t *testing.T) {
	for _, l := range append(mpirun.Launchers(t), alone) {
		t.Run("under "+l.Name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			file := filepath.Join(folder, "checkpoint")
			args := []string{"-digest", "-steps", "1000000", "-save", file, "-every", "1"}
			j := start(t, l, 2, args...)
			if !appears(j, file) {
				out, err := j.Wait()
				t.Fatalf("no checkpoint: %v\n%s", err, out)
			}
			for _, pid := range ranksOf(j) { // one of them writes the file
				limit(t, pid, 100_000)
			}
			out, err := j.Wait()
			if err == nil || !strings.Contains(out, "file too large") {
				t.Errorf("%v\n%s", err, out)
			}
			entries, _ := os.ReadDir(folder)
			before, err := os.ReadFile(file)
			if err != nil || len(entries) != 1 {
				t.Fatalf("%v, %v", entries, err)
			}
			j = start(t, alone, 1, args...)
			for changed := false; !changed; {
				after, err := os.ReadFile(file)
				if changed = !bytes.Equal(before, after); err != nil {
					t.Fatal(err)
				}
				select {
				case <-j.Ended():
					out, err := j.Wait()
					t.Fatalf("it does not go on: %v\n%s", err, out)
				default:
				}
			}
			_ = syscall.Kill(j.PID(), syscall.SIGTERM)
			if out, err := j.Wait(); err != nil || !strings.Contains(out, "going on after step ") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// limit sets the largest file that a process may write.
func limit(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	value := syscall.Rlimit{Cur: bytes, Max: bytes}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&value)), 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
}
