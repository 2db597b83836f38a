//go:build linux && (amd64 || arm64)

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace/dist"
	"github.com/millrace-go/millrace/dist/disttest"
	"github.com/millrace-go/millrace/internal/testing/acrosstest"
	_ "github.com/millrace-go/millrace/internal/testing/nocache"
)

// caseVariable names the case of package disttest to run. Without it a job runs all cases that
// leave the World as it was. folderVariable is the folder for the ranks' verdicts: a job that is
// aborted may lose what it has printed.
const (
	caseVariable   = "MPI_TEST_CASE"
	folderVariable = "MPI_TEST_FOLDER"
)

func init() { programs["suite"] = suite }

// cases are those of the suite, and steps of package optim. Of their mistakes, for each of which a
// job is started, a few find out whether an error comes through this driver; dist/local has all.
func cases() []disttest.Case {
	all := slices.Concat(disttest.Cases(), acrosstest.Digests(1, 3), acrosstest.BoundSteps(2))
	for _, c := range acrosstest.Mistakes() {
		switch c.Name {
		case "across, other shapes", "across, a context that ended, recorded", "across, a World that failed, bound":
			c.Ranks = []int{2}
			all = append(all, c)
		}
	}
	return all
}

// suite runs cases on one World and writes a verdict for each.
func suite() error {
	list, options := cases(), dist.Options{}
	if name := os.Getenv(caseVariable); name != "" {
		i := slices.IndexFunc(list, func(c disttest.Case) bool { return c.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no case %q", name)
		}
		list, options = list[i:i+1], list[i].Options
	}
	rank, size := 0, 0
	options.Log = func(line string) {
		verdict(rank, "log", line)
		fmt.Fprintln(os.Stderr, line)
		if len(list) == 1 { // the end of the job: not before all have their verdicts
			awaitVerdicts(size, list[0].Name)
		}
	}
	ctx := context.Background()
	w, err := dist.Open(ctx, options)
	if err != nil {
		return err
	}
	rank, size = w.Rank(), w.Size()
	for _, c := range list {
		if c.Fails && len(list) > 1 || !slices.Contains(c.Ranks, w.Size()) {
			continue
		}
		text := ""
		if err := c.Run(ctx, w); err != nil {
			text = err.Error()
		}
		if err := verdict(rank, c.Name, text); err != nil {
			return err
		}
	}
	return w.Close()
}

// verdict writes the error of a case on a rank. Another rank that finds the file finds all of it.
func verdict(rank int, name, text string) error {
	file := verdictFile(os.Getenv(folderVariable), rank, name)
	if err := os.WriteFile(file+".part", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

func verdictFile(folder string, rank int, name string) string {
	return filepath.Join(folder, fmt.Sprintf("%d %s", rank, name))
}

// awaitVerdicts waits until each rank has a verdict or has logged an error.
func awaitVerdicts(size int, name string) {
	folder := os.Getenv(folderVariable)
	there := func(rank int) bool {
		_, err1 := os.Stat(verdictFile(folder, rank, name))
		_, err2 := os.Stat(verdictFile(folder, rank, "log"))
		return err1 == nil || err2 == nil
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all := true
		for r := range size {
			all = all && there(r)
		}
		if all {
			return
		}
	}
}

// outcome is how a job ended.
type outcome struct {
	folder, out string
	err         error
}

func (j job) suite(t *testing.T, folder, name string, ranks int) outcome {
	out, err := j.run(t, "suite", ranks, caseVariable+"="+name, folderVariable+"="+folder)
	return outcome{folder, out, err}
}

// TestSuite: all cases. Those that fail their World have jobs of their own.
func TestSuite(t *testing.T) {
	for name, j := range jobs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			together, folders := map[int]outcome{}, t.TempDir()
			folder := func(name string) string {
				f := filepath.Join(folders, name)
				if err := os.Mkdir(f, 0o700); err != nil {
					t.Fatal(err)
				}
				return f
			}
			disttest.Run(t, cases(), func(t *testing.T, c disttest.Case, ranks int) []error {
				o, ran := together[ranks]
				switch {
				case c.Fails:
					o = j.suite(t, folder(fmt.Sprint(ranks, " ", c.Name)), c.Name, ranks)
				case !ran:
					o = j.suite(t, folder(fmt.Sprint(ranks)), "", ranks)
					together[ranks] = o
				}
				if !c.Fails && o.err != nil && !ran {
					t.Errorf("the job of %d ranks: %v\n%s", ranks, o.err, o.out)
				}
				if c.Fails && o.err == nil {
					t.Error("a job whose World failed ended without an error")
				}
				return o.errors(c.Name, ranks)
			})
		})
	}
}

// errors are the errors of a case on each rank.
func (o outcome) errors(name string, ranks int) []error {
	errs := make([]error, ranks)
	for r := range errs {
		text, err := os.ReadFile(verdictFile(o.folder, r, name))
		if err != nil && closes(o.folder, r, name) {
			continue
		}
		if err != nil {
			errs[r] = fmt.Errorf("no verdict; the job ended with %v and printed\n%s", o.err, strings.TrimSpace(o.out))
		} else if len(text) > 0 {
			errs[r] = errors.New(string(text))
		}
	}
	return errs
}

// closes reports whether a rank called Close in its case, which ends the process: then it has
// logged the error that the case is about.
func closes(folder string, rank int, name string) bool {
	line, err := os.ReadFile(verdictFile(folder, rank, "log"))
	return err == nil && name == "one call too many" && strings.Contains(string(line), "allreduce") && strings.Contains(string(line), "close")
}
