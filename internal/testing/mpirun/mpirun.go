//go:build linux

package mpirun

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Launcher starts the ranks of a job. The zero value starts one process without a launcher.
type Launcher struct {
	Name string // "openmpi" or "mpich"
	path string
	args []string
}

// Launchers are those of this system, by Debian's names. A launcher that MILLRACE_REQUIRE asks for
// with mpi must be there. Without any the test is skipped.
func Launchers(t testing.TB) (found []Launcher) {
	for _, l := range []Launcher{
		{"openmpi", "mpirun.openmpi", []string{"--oversubscribe"}},
		{"mpich", "mpiexec.hydra", nil},
	} {
		path, err := exec.LookPath(l.path)
		if err == nil {
			l.path = path
			found = append(found, l)
			continue
		}
		why := fmt.Sprintf("no %s here (Debian: openmpi-bin, mpich)", l.path)
		if slices.Contains(strings.Split(os.Getenv("MILLRACE_REQUIRE"), ","), "mpi") {
			t.Error(why)
		} else {
			t.Log(why)
		}
	}
	if len(found) == 0 {
		t.Skip("no launcher of MPI is installed (Debian: openmpi-bin, mpich)")
	}
	return found
}

// At is the launcher at a path, whatever it is called.
func At(path string) Launcher {
	out, _ := exec.Command(path, "--version").CombinedOutput()
	if bytes.Contains(out, []byte("Open MPI")) || bytes.Contains(out, []byte("PRRTE")) {
		return Launcher{"openmpi", path, []string{"--oversubscribe"}}
	}
	return Launcher{"mpich", path, nil}
}

// Command is the command line that starts a program of n ranks.
func (l Launcher) Command(n int, program ...string) []string {
	if l.path == "" {
		return program
	}
	return slices.Concat([]string{l.path}, l.args, []string{"-n", fmt.Sprint(n)}, program)
}

// Root lets Open MPI start ranks as root, in the environment of a launcher.
var Root = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}

// Job is a program that was started.
type Job struct {
	cmd   *exec.Cmd
	out   bytes.Buffer // of all ranks; complete when the job has ended
	mark  string       // in the environment of all its processes
	ended chan struct{}
	err   error
}

// markVariable has a text of its own for each job.
const markVariable = "MILLRACE_TEST_JOB"

// Start starts a program of n ranks, with env besides the environment of the test. When the test
// ends, all processes of the job are killed.
func (l Launcher) Start(t testing.TB, n int, env []string, program ...string) *Job {
	t.Helper()
	args := l.Command(n, program...)
	j := &Job{mark: fmt.Sprintf("%s=%016x", markVariable, rand.Uint64()), ended: make(chan struct{})}
	j.cmd = exec.Command(args[0], args[1:]...)
	j.cmd.Env = slices.Concat(os.Environ(), Root, env, []string{j.mark})
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.out
	j.cmd.WaitDelay = 10 * time.Second // a process that is left may have the pipe
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		j.err = j.cmd.Wait()
		close(j.ended)
	}()
	t.Cleanup(func() {
		j.Kill()
		<-j.ended
	})
	return j
}

// PID is the number of the process that Start has started: the launcher, if there is one.
func (j *Job) PID() int { return j.cmd.Process.Pid }

// Ended is closed when that process has ended.
func (j *Job) Ended() <-chan struct{} { return j.ended }

// Wait waits for that process, and returns all that the job printed.
func (j *Job) Wait() (string, error) {
	<-j.ended
	return j.out.String(), j.err
}

// Process is a process of a job.
type Process struct {
	PID     int
	Rank    string // as its launcher has numbered it; "" for the launcher's own
	Program string // the path of its executable
}

// Processes lists the processes of the job that have not ended.
func (j *Job) Processes() (list []Process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		p := Process{}
		if _, err := fmt.Sscan(e.Name(), &p.PID); err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/environ") // empty for one that has ended
		env := strings.Split(string(text), "\x00")
		if err != nil || !slices.Contains(env, j.mark) {
			continue
		}
		for _, name := range []string{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="} {
			for _, v := range env {
				if rank, ok := strings.CutPrefix(v, name); ok {
					p.Rank = rank
				}
			}
		}
		if p.Program, err = os.Readlink("/proc/" + e.Name() + "/exe"); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// Left waits until no process of the job is left, for a time at most, and returns those that are.
func (j *Job) Left(most time.Duration) (list []Process) {
	for end := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		if list = j.Processes(); len(list) == 0 || time.Now().After(end) {
			return list
		}
	}
}

// Kill ends all processes of the job.
func (j *Job) Kill() {
	for {
		list := j.Processes()
		for _, p := range list {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		if len(list) == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
