//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/internal/testing/mpirun"
)

// The tests start this test binary again under a launcher, where it runs one of the programs.
var programs = map[string]func() error{}

const programVariable = "MPI_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if name := os.Getenv(programVariable); name != "" {
		if err := programs[name](); err != nil {
			fmt.Fprintf(os.Stderr, "program %s: %v\n", name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var given = flag.String("mpirun", "", "a launcher to test instead of those that are installed; MILLRACE_MPI should name its library")

// job is a launcher to test with.
type job struct{ mpirun.Launcher }

// jobs are the launcher that was given, or those of this system, by name.
func jobs(t *testing.T) map[string]job {
	var list []mpirun.Launcher
	if *given != "" {
		list = append(list, mpirun.At(*given))
	} else {
		list = mpirun.Launchers(t)
	}
	found := map[string]job{}
	for _, l := range list {
		found[l.Name] = job{l}
	}
	return found
}

// run runs a program on n ranks, and returns all that it printed.
func (j job) run(t *testing.T, program string, n int, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	out, err := j.command(ctx, program, n, env...).CombinedOutput()
	return string(out), err
}

func (j job) command(ctx context.Context, program string, n int, env ...string) *exec.Cmd {
	args := j.Command(n, os.Args[0])
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Env = slices.Concat(os.Environ(), []string{programVariable + "=" + program}, mpirun.Root, env)
	c.WaitDelay = 10 * time.Second
	return c
}

// each runs a program under every launcher with each number of ranks. Every rank must end it with
// a line of its own.
func each(t *testing.T, program string, sizes []int, env ...string) {
	for name, j := range jobs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sizes {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					out, err := j.run(t, program, n, env...)
					for r := range n {
						if line := fmt.Sprintf("%s: rank %d of %d is done\n", program, r, n); !strings.Contains(out, line) {
							t.Errorf("%q is missing", line)
						}
					}
					if err != nil || t.Failed() {
						t.Errorf("%v:\n%s", err, out)
					}
				})
			}
		})
	}
}

// finish prints the line that each looks for, in one write.
func finish(d *driver, program string) {
	os.Stdout.WriteString(fmt.Sprintf("%s: rank %d of %d is done\n", program, d.info.Rank, d.info.Size))
}
