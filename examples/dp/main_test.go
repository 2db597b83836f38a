//go:build linux

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/testing/mpirun"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
	"github.com/millrace-go/millrace/nn"
)

// asProgram is the variable that makes the test program the example.
const asProgram = "MILLRACE_TEST_DP"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// start starts the example as n ranks of a launcher.
func start(t *testing.T, l mpirun.Launcher, n int, args ...string) *mpirun.Job {
	t.Helper()
	return l.Start(t, n, []string{asProgram + "=1"}, append([]string{os.Args[0]}, args...)...)
}

// complete runs the example to its end, and returns what it printed.
func complete(t *testing.T, l mpirun.Launcher, n int, args ...string) string {
	t.Helper()
	out, err := start(t, l, n, args...).Wait()
	if err != nil {
		t.Fatalf("%d ranks, %v: %v\n%s", n, args, err, out)
	}
	return out
}

var digestLine = regexp.MustCompile(`(?m)^digest ([0-9a-f]{16})\r?$`) // Open MPI gives ranks a terminal

// digestOf is the digest that the example printed, once; "" if it printed none.
func digestOf(out string) string {
	if m := digestLine.FindAllStringSubmatch(out, -1); len(m) == 1 {
		return m[0][1]
	}
	return ""
}

// alone starts one process.
var alone mpirun.Launcher

// appears waits until a file is there. It reports false if the job has ended before.
func appears(j *mpirun.Job, path string) bool {
	for {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
		select {
		case <-j.Ended():
			return false
		case <-time.After(time.Millisecond):
		}
	}
}

// lessons are trainings that take about a second.
var lessons = map[string][]string{
	"mlp": {"-digest", "-model", "mlp", "-steps", "60"},
	"gpt": {"-digest", "-model", "gpt", "-steps", "12", "-batch", "8"},
}

// TestStopped: a training that is stopped by SIGTERM ends well, and continues to the result of one
// that was not stopped.
func TestStopped(t *testing.T) {
	for model, args := range lessons {
		t.Run(model, func(t *testing.T) { stopped(t, alone, 1, args) })
	}
}

// TestStoppedRanks: the same, stopped by a signal to one of two ranks, and continued by one process.
func TestStoppedRanks(t *testing.T) {
	for _, l := range mpirun.Launchers(t) {
		for model, args := range lessons {
			t.Run(l.Name+"/"+model, func(t *testing.T) { stopped(t, l, 2, args) })
		}
	}
}

func stopped(t *testing.T, l mpirun.Launcher, n int, args []string) {
	want := digestOf(complete(t, alone, 1, args...))
	if want == "" {
		t.Fatal("no digest")
	}
	file := filepath.Join(t.TempDir(), "new", "checkpoint")
	for stopped := false; !stopped; { // a training may end before the signal comes
		os.Remove(file)
		j := start(t, l, n, slices.Concat(args, []string{"-save", file, "-every", "1"})...)
		if !appears(j, file) {
			out, err := j.Wait()
			t.Fatalf("no checkpoint: %v\n%s", err, out)
		}
		if ranks := ranksOf(j); len(ranks) > 0 {
			_ = syscall.Kill(ranks[rand.IntN(len(ranks))], syscall.SIGTERM) // it may have ended
		}
		out, err := j.Wait()
		stopped = strings.Contains(out, "stopped by SIGTERM after step ")
		if stopped && err != nil || !stopped && digestOf(out) != want { // a signal after the last call ends a rank
			t.Fatalf("%v, want digest %s\n%s", err, want, out)
		}
		if left := j.Left(time.Minute); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
	}
	out := complete(t, alone, 1, append(args, "-save", file)...)
	if got := digestOf(out); got != want || !strings.Contains(out, "going on after step ") {
		t.Errorf("digest %s, without a stop %s:\n%s", got, want, out)
	}
	if out := complete(t, alone, 1, append(args, "-save", file)...); digestOf(out) != want {
		t.Errorf("the last checkpoint has another digest than %s:\n%s", want, out)
	}
}

// ranksOf are the processes of a job that run the example.
func ranksOf(j *mpirun.Job) (pids []int) {
	for _, p := range j.Processes() {
		if p.Program == os.Args[0] {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// TestRefused: flags that contradict each other, and a checkpoint of other settings, are errors.
func TestRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	complete(t, alone, 1, "-steps", "2", "-save", file)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-steps", "2", "-save", file, "-batch", "32"}, "made with other flags"},
		{[]string{"-model", "gpt", "-save", file}, "the file and the model differ"},
		{[]string{"-model", "gpt", "-save", file, "-infer", ".", "-out", t.TempDir()}, "no entry has a parameter"},
		{[]string{"-model", "cnn"}, "no model"},
		{[]string{"-infer", "."}, "-out"},
		{[]string{"-infer", ".", "-out", "x"}, "-save"},
		{[]string{"-every", "0"}, "-every"},
		{[]string{"-leaves", "0"}, "-leaves"},
		{[]string{"more"}, "flags only"},
		{[]string{"-data", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		out, err := start(t, alone, 1, c.args...).Wait()
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v, want %q:\n%s", c.args, err, c.want, out)
		}
	}
}

// inference makes a checkpoint, files, and what one process that is left alone writes for them. It
// returns the flags of the example but for the folder of outputs.
func inference(t *testing.T) (args []string, want map[string]string) {
	t.Helper()
	file, in, out := filepath.Join(t.TempDir(), "checkpoint"), t.TempDir(), t.TempDir()
	complete(t, alone, 1, "-steps", "60", "-save", file)
	text, err := os.ReadFile("../samples/digits.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[len(lines)-301:] // behind comments
	for i := range 40 {
		rows := bytes.Join(lines[i*5:i*5+100], nil)
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("%d.csv", i)), bytes.Repeat(rows, 20), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	args = []string{"-save", file, "-infer", in, "-out"}
	complete(t, alone, 1, append(args, out)...)
	want = contents(t, out)
	if len(want) != 40 || strings.Count(want["0.csv"], "\n") != 2000 {
		t.Fatalf("%d files, the first of %d lines", len(want), strings.Count(want["0.csv"], "\n"))
	}
	return args, want
}

// TestInfer: processes that are killed while they work cost nothing but time. Started again, they
// compute what is missing, to the bytes of one process that was left alone.
func TestInfer(t *testing.T) {
	args, want := inference(t)
	again(t, want, func(out string) (jobs []*mpirun.Job) {
		for part := range 2 {
			env := []string{asProgram + "=1", fmt.Sprintf("JOB_COMPLETION_INDEX=%d", part), "JOB_COMPLETIONS=2"}
			jobs = append(jobs, alone.Start(t, 1, env, append([]string{os.Args[0]}, append(args, out)...)...))
		}
		return jobs
	})
}

// TestInferLaunched: the same with ranks, all of which the launcher ends when one is killed.
func TestInferLaunched(t *testing.T) {
	launchers := mpirun.Launchers(t)
	args, want := inference(t)
	for _, l := range launchers {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			again(t, want, func(out string) []*mpirun.Job { return []*mpirun.Job{start(t, l, 2, append(args, out)...)} })
		})
	}
}

// TestWeights: a file without all of the model's weights is an error.
func TestWeights(t *testing.T) {
	file, layer := filepath.Join(t.TempDir(), "checkpoint"), nn.NewLinear(2, 2)
	if err := nn.Save(file, nn.NewSequential(layer)); err != nil {
		t.Fatal(err)
	}
	if err := weights(file, nn.NewSequential(layer)); err != nil {
		t.Error(err)
	}
	if err := weights(file, nn.NewSequential(layer, layer, nn.NewLinear(2, 2))); err == nil || !strings.Contains(err.Error(), "has no 2.bias, 2.weight") {
		t.Error(err)
	}
}

// again starts jobs, kills one of their processes, starts the jobs again, and compares the outputs.
func again(t *testing.T, want map[string]string, start func(out string) []*mpirun.Job) {
	for killed := false; !killed; { // a process may end before the signal comes
		out := filepath.Join(t.TempDir(), "out")
		jobs := start(out)
		for appeared := false; !appeared; time.Sleep(time.Millisecond) {
			files, _ := filepath.Glob(filepath.Join(out, "*.csv"))
			select {
			case <-jobs[0].Ended():
				appeared = true
			default:
				appeared = len(files) > 0
			}
		}
		if ranks := ranksOf(jobs[0]); len(ranks) > 0 {
			killed = syscall.Kill(ranks[0], syscall.SIGKILL) == nil
		}
		_, err := jobs[0].Wait()
		killed = killed && err != nil
		for _, j := range jobs[1:] {
			if text, err := j.Wait(); err != nil {
				t.Fatalf("the other process: %v\n%s", err, text)
			}
		}
		for _, j := range start(out) {
			if text, err := j.Wait(); err != nil || !strings.Contains(text, " were there, 0 failed\n") {
				t.Fatalf("%v\n%s", err, text)
			}
		}
		got := contents(t, out)
		if len(got) != len(want) {
			t.Errorf("%d files, want %d", len(got), len(want))
		}
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s differs", name)
			}
		}
	}
}

// contents are the files of a folder.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}
