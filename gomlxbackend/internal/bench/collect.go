package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
)

// workload is what one of the suite's benchmarks runs again and again.
type workload struct {
	name   string
	exec   compute.Executable
	inputs []compute.Buffer
	first  time.Duration // of its first run
}

// run is one turn of the suite's loop.
func (w *workload) run() error {
	outputs, err := w.exec.Execute(w.inputs, nil, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	for _, b := range outputs {
		if err := b.Finalize(); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// recorder is a backend that notes what is executed on it for the first time.
type recorder struct {
	compute.Backend
	seen  map[compute.Executable]bool
	loads []workload
}

func (r *recorder) Builder(name string) compute.Builder { return &builder{r.Backend.Builder(name), r} }

type builder struct {
	compute.Builder
	r *recorder
}

func (b *builder) Compile() (compute.Executable, error) {
	e, err := b.Builder.Compile()
	if err != nil {
		return nil, err
	}
	return &executable{e, b.r}, nil
}

type executable struct {
	compute.Executable
	r *recorder
}

func (e *executable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	start := time.Now()
	out, err := e.Executable.Execute(inputs, donate, device)
	if !e.r.seen[e.Executable] {
		e.r.seen[e.Executable] = true
		e.r.loads = append(e.r.loads, workload{exec: e.Executable, inputs: inputs, first: time.Since(start)})
	}
	return out, err
}

// root is the benchmark that all of the suite's are in.
const root = "Suite"

// collect runs a suite once and gives what its benchmarks execute, with the
// names that package testing prints them under.
func collect(b compute.Backend, suite func(*testing.B, compute.Backend)) ([]workload, error) {
	r := &recorder{Backend: b, seen: map[compute.Executable]bool{}}
	names, err := printed(func() {
		testing.RunBenchmarks(regexp.MatchString, []testing.InternalBenchmark{{Name: root, F: func(b *testing.B) {
			suite(b, r)
		}}})
	})
	if err != nil {
		return nil, err
	}
	if len(names) != len(r.loads) {
		return nil, fmt.Errorf("%d benchmarks, of which %d execute something: %q", len(names), len(r.loads), names)
	}
	for i := range r.loads {
		r.loads[i].name = names[i]
	}
	return r.loads, nil
}

// printed is the names of the benchmarks that f runs, without those that only
// have others in them. Each is run once.
func printed(f func()) (names []string, err error) {
	if flag.Lookup("test.bench") == nil {
		testing.Init()
	}
	// With test.v a name is printed before its benchmark is run.
	for k, v := range map[string]string{"test.bench": ".", "test.benchtime": "1x", "test.v": "true"} {
		if err := flag.Set(k, v); err != nil {
			return nil, err
		}
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var failed []string
	done := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			name, found := strings.CutPrefix(lines.Text(), root+"/")
			switch n := len(names); {
			case strings.Contains(lines.Text(), "--- FAIL"):
				failed = append(failed, lines.Text())
			case !found || strings.Contains(name, "\t"): // a result
			case n > 0 && strings.HasPrefix(name, names[n-1]+"/"):
				names[n-1] = name
			default:
				names = append(names, name)
			}
		}
		done <- lines.Err()
	}()
	stdout := os.Stdout
	os.Stdout = to
	func() {
		defer func() { os.Stdout = stdout }()
		f()
	}()
	err = errors.Join(to.Close(), <-done, from.Close())
	if err == nil && len(failed) > 0 {
		err = errors.New(strings.Join(failed, "\n"))
	}
	return names, err
}
