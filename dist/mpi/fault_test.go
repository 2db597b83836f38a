//go:build linux && (amd64 || arm64)

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/dist"
)

func init() { programs["steps"] = steps }

const deadlineVariable = "MPI_TEST_DEADLINE"

// steps sums without end. It writes its process's number to the folder, and the World's error.
func steps() error {
	ctx := context.Background()
	deadline, err := time.ParseDuration(os.Getenv(deadlineVariable))
	if err != nil {
		return err
	}
	w, err := dist.Open(ctx, dist.Options{Deadline: deadline})
	if err != nil {
		return err
	}
	if err := verdict(w.Rank(), "pid", fmt.Sprint(os.Getpid())); err != nil {
		return err
	}
	x := millrace.Ones(millrace.Float32, 100_000)
	defer x.Release()
	for err == nil {
		r := w.AllReduce(x)
		err = r.Eval()
		r.Release()
	}
	var rank *dist.RankError
	if errors.As(err, &rank) {
		err = verdict(w.Rank(), "error", fmt.Sprintf("%v of %d: %v", rank.State, rank.Rank, err))
	}
	return errors.Join(err, w.Close())
}

// TestKilled: when a rank is killed the launcher ends the others, at once, and says that the job
// failed. TestStopped: when a rank is stopped the others name it after the Deadline and end the
// job. No process is left either way.
func TestKilled(t *testing.T)  { fault(t, syscall.SIGKILL, 5*time.Minute) }
func TestStopped(t *testing.T) { fault(t, syscall.SIGSTOP, 6*time.Second) }

func fault(t *testing.T, sig syscall.Signal, deadline time.Duration) {
	const ranks = 3
	for name, j := range jobs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			folder := t.TempDir()
			var out bytes.Buffer
			c := j.command(ctx, "steps", ranks, folderVariable+"="+folder, deadlineVariable+"="+deadline.String())
			c.Stdout, c.Stderr = &out, &out
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			pids := numbers(folder, ranks, ended)
			if pids == nil {
				cancel()
				<-ended
				t.Fatalf("the ranks did not begin:\n%s", &out)
			}
			time.Sleep(rand.N(100 * time.Millisecond)) // somewhere in a step
			victim := rand.IntN(ranks)
			begun := time.Now()
			if err := syscall.Kill(pids[victim], sig); err != nil {
				t.Error(err)
			}
			err := <-ended
			t.Logf("the job ended %v after rank %d had got %v", time.Since(begun).Round(time.Millisecond), victim, sig)
			if err == nil || ctx.Err() != nil {
				t.Errorf("the job ended with %v:\n%s", err, &out)
			}
			for r, pid := range pids {
				for end := time.Now().Add(time.Minute); alive(pid); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(end) {
						syscall.Kill(pid, syscall.SIGKILL)
						t.Errorf("rank %d is left", r)
						break
					}
				}
			}
			if sig == syscall.SIGSTOP {
				named(t, folder, ranks, victim, &out)
			}
		})
	}
}

// numbers waits for the numbers of the ranks' processes.
func numbers(folder string, ranks int, ended chan error) []int {
	for {
		var pids []int
		for r := range ranks {
			text, err := os.ReadFile(verdictFile(folder, r, "pid"))
			if pid, err2 := strconv.Atoi(string(text)); err == nil && err2 == nil {
				pids = append(pids, pid)
			}
		}
		if len(pids) == ranks {
			return pids
		}
		select {
		case err := <-ended:
			ended <- err
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// alive reports whether a process is there, and not only as an entry for its parent.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// named checks that every error that another rank wrote names the victim, and that there is one.
// (The first rank that closes its World ends the others. Open MPI lets the victim go on for that, so
// it may write one too: its own wait was longer than the Deadline.)
func named(t *testing.T, folder string, ranks, victim int, out fmt.Stringer) {
	found := 0
	for r := range ranks {
		text, err := os.ReadFile(verdictFile(folder, r, "error"))
		if err != nil || r == victim {
			continue
		}
		found++
		if want := fmt.Sprintf("%v of %d:", dist.NoAnswer, victim); !strings.HasPrefix(string(text), want) {
			t.Errorf("rank %d says %q, which does not begin with %q", r, text, want)
		}
	}
	if found == 0 {
		t.Errorf("no rank has named one:\n%s", out)
	}
}
