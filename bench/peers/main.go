// Peers times other libraries beside Millrace: whatever is installed, in turns, on
// the same inputs, and with results that must agree.
//
//	go run ./bench/peers -o docs/benchmarks/peers.md
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-go/millrace/internal/hostinfo"
	"github.com/millrace-go/millrace/internal/statusline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the command's flags.
type options struct {
	bench
	only, workloads string
	shapeText       string
	out, from       string
	places          places
}

func flags(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.threads, "threads", runtime.NumCPU(), "`threads` that every contestant is told to use")
	f.IntVar(&o.rounds, "rounds", 15, "`rounds` that count")
	f.IntVar(&o.warmUps, "warmup", 3, "`rounds` before those")
	f.DurationVar(&o.limit, "limit", 3*time.Minute, "`time` for an answer; compiling is a part of the first one")
	f.StringVar(&o.shapeText, "shape", "32,512,2048", "`shape` of the large tensor, of rank 3")
	f.StringVar(&o.only, "only", "", "`contestants`, separated by semicolons; all that are installed where empty")
	f.StringVar(&o.workloads, "workloads", "", "`workloads`, separated by commas; all where empty")
	f.StringVar(&o.out, "o", "", "Markdown `file` to write, or to write into between its marks; samples go to a .json beside it")
	f.StringVar(&o.from, "from", "", "JSON `file` of samples to make the tables of, instead of timing")
	f.StringVar(&o.places.source, "source", filepath.Join("bench", "peers"), "`folder` of the contestants' programs")
	f.StringVar(&o.places.before, "before", "", "`folder` of another checkout of Millrace, which is timed beside this one")
	f.StringVar(&o.places.python, "python", "python3", "Python `interpreter` that has the libraries")
	f.StringVar(&o.places.burn, "burn", filepath.Join("dist", "peers", "burn"), "`folder` with cargo's target folders flex, ndarray and vulkan")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(o.shapeText, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > 1<<20 {
			return nil, fmt.Errorf("-shape %s: want three numbers", o.shapeText)
		}
		o.shape = append(o.shape, n)
	}
	switch {
	case len(o.shape) != 3 || o.shape.len() > 1<<28:
		return nil, fmt.Errorf("-shape %s: want three numbers, at most %d elements", o.shapeText, 1<<28)
	case o.threads < 1 || o.rounds < 1 || o.warmUps < 1:
		return nil, errors.New("-threads, -rounds and -warmup must be at least 1")
	case f.NArg() > 0:
		return nil, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	o.status = statusline.New(stderr, 10*time.Second)
	return o, nil
}

// run is the command; its result is the exit status: 1 where a contestant failed
// or disagreed, 2 where the flags are wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := flags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	o.quit = ctx.Done()
	if o.work, err = os.MkdirTemp("", "peers"); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defer os.RemoveAll(o.work)
	o.places.work = o.work
	report, err := o.obtain()
	if err == nil && o.out == "" {
		_, err = io.WriteString(stdout, report.markdown())
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	bad := report.failures()
	for _, line := range bad {
		fmt.Fprintln(stderr, line)
	}
	return min(len(bad), 1)
}

// obtain times, or reads what was timed before.
func (o *options) obtain() (*Report, error) {
	if o.from == "" {
		return o.report(o.places.list(o.threads), o.write)
	}
	b, err := os.ReadFile(o.from)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", o.from, err)
	}
	return r, o.write(r)
}

// report times what was asked for, and calls each with what is there after every
// workload.
func (o *options) report(list []contestant, each func(*Report) error) (*Report, error) {
	r := &Report{Machine: o.machine(), Threads: o.threads, Rounds: o.rounds, WarmUps: o.warmUps, Environment: heeded()}
	ws, err := chosen(o.workloads, ",", workloads, func(w workload) string { return w.name })
	if err != nil {
		return nil, err
	}
	list, err = chosen(o.only, ";", list, func(c contestant) string { return c.name })
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		p := &Presence{Name: c.name, Kept: c.kept, Ours: c.ours}
		r.Contestants = append(r.Contestants, p)
		o.status.Say("looking for %s", c.name)
		if p.Versions, err = c.versions(); err != nil {
			p.Missing = err.Error()
			continue
		}
		o.contestants = append(o.contestants, c)
	}
	defer o.close()
	for _, w := range ws {
		result, err := o.time(w)
		if err != nil {
			return nil, err
		}
		r.Workloads = append(r.Workloads, result)
		if err := each(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// machine is this one, with the commit that ours is built from, which go run does
// not write down.
func (o *options) machine() hostinfo.Machine {
	m := hostinfo.This()
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", o.places.source}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	m.Commit = git("rev-parse", "--short=12", "HEAD")
	if m.Commit != "" && git("status", "--porcelain", "--untracked-files=no") != "" {
		m.Commit += "+"
	}
	return m
}

// versions builds a contestant, where it is to be built, and asks it what it uses.
// The error says why it is not installed.
func (c contestant) versions() (map[string]string, error) {
	if c.build != nil {
		cmd := exec.Command(c.build[0], c.build[1:]...)
		cmd.Dir, cmd.Env = c.buildIn, append(os.Environ(), c.buildEnv...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lastLine(string(out)))
		}
	}
	cmd := exec.Command(c.command[0], append(c.command[1:len(c.command):len(c.command)], c.probe...)...)
	var errs strings.Builder
	cmd.Env, cmd.Stderr = c.env, &errs
	out, err := cmd.Output()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no %s", filepath.Base(c.command[0]))
	case err != nil && errs.Len() > 0:
		return nil, errors.New(lastLine(errs.String()))
	case err != nil:
		return nil, err
	}
	var v map[string]string
	if err := json.Unmarshal(out, &v); err != nil {
		return nil, fmt.Errorf("versions %.80q: %w", out, err)
	}
	return v, nil
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// chosen are those of a list whose names are in text; all where text is empty.
func chosen[T any](text, separator string, list []T, name func(T) string) ([]T, error) {
	if text == "" {
		return list, nil
	}
	var out []T
	for want := range strings.SplitSeq(text, separator) {
		i := slices.IndexFunc(list, func(t T) bool { return name(t) == strings.TrimSpace(want) })
		if i < 0 {
			var names []string
			for _, t := range list {
				names = append(names, name(t))
			}
			return nil, fmt.Errorf("there is no %q; there are %s", want, strings.Join(names, separator+" "))
		}
		out = append(out, list[i])
	}
	return out, nil
}

// heeded are the variables that are set and that change what libraries do.
func heeded() map[string]string {
	set := map[string]string{}
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		for _, prefix := range []string{"OPENBLAS_", "MKL_", "OMP_", "KMP_", "XLA_", "JAX_", "TORCH", "NUMEXPR_", "MALLOC_", "GLIBC_TUNABLES", "MILLRACE_", "GOGC", "GODEBUG"} {
			if strings.HasPrefix(name, prefix) {
				set[name] = value
			}
		}
	}
	return set
}

// write writes the tables where they are wanted in a file, and the samples beside
// it.
func (o *options) write(r *Report) error {
	if o.out == "" {
		return nil
	}
	page, err := os.ReadFile(o.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := placed(string(page), r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", o.out, err)
	}
	samples, err := r.json()
	if err != nil {
		return err
	}
	if err := os.WriteFile(strings.TrimSuffix(o.out, filepath.Ext(o.out))+".json", samples, 0o666); err != nil {
		return err
	}
	return os.WriteFile(o.out, []byte(text), 0o666)
}
