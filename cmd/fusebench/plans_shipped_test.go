package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace-go/millrace"
)

// shipped is examples/shipped, which records its plans with -record, together with its package for
// generated files. The generated files are laid over the source tree only for the compiler, because
// other processes may be reading the tree.
type shipped struct {
	t   *testing.T
	dir string
}

func newShipped(t *testing.T) *shipped {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	return &shipped{t, t.TempDir()}
}

func (s *shipped) path(name string) string { return filepath.Join(s.dir, name) }

// overlay writes a file that makes the compiler see other files in the program's package, and
// none of those that were generated there before. It returns the flag for the compiler.
func (s *shipped) overlay(files map[string]string) string {
	s.t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "shipped", "plans"))
	if err != nil {
		s.t.Fatal(err)
	}
	there, err := filepath.Glob(filepath.Join(dir, genPrefix+"*"))
	if err != nil {
		s.t.Fatal(err)
	}
	replace := map[string]string{}
	for _, path := range there {
		replace[path] = ""
	}
	for name, path := range files {
		replace[filepath.Join(dir, name)] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		s.t.Fatal(err)
	}
	file := s.path(fmt.Sprintf("overlay-%d.json", len(files)))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return "-overlay=" + file
}

// plain builds the program without generated files.
func (s *shipped) plain() {
	s.t.Helper()
	s.goCommand(nil, "build", s.overlay(nil), "-o", s.path("plain"), "./examples/shipped")
}

// goCommand runs the go command in the root of the module.
func (s *shipped) goCommand(env []string, args ...string) {
	s.t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		s.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// run runs a built program with an empty cache and without a compiler, and reads the JSON that it
// prints.
func (s *shipped) run(to any, name string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(s.path(name), args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PATH=") || strings.HasPrefix(v, "CC=") || strings.HasPrefix(v, "MILLRACE_")
	})
	cmd.Env = append(cmd.Env, "MILLRACE_CACHE=off", "PATH=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), to); err != nil {
		s.t.Fatalf("%v\n%s", err, out.String())
	}
}

// generate makes the package of a bundle, and returns the flag that lays it over the module.
func (s *shipped) generate(bundle string) (overlay string) {
	s.t.Helper()
	pkg := s.path("generated")
	code, out, errs := fusebench("plans", "gen", "-o", pkg, "-pkg", "plans", s.path(bundle))
	if code != 0 || errs != "" || strings.Contains(out, "left out") {
		s.t.Fatalf("exit %d, %q\n%s", code, errs, out)
	}
	s.t.Log(strings.ReplaceAll(out, s.dir, ""))
	files := map[string]string{}
	for name := range filesIn(s.t, pkg) {
		files[name] = filepath.Join(pkg, name)
	}
	return s.overlay(files)
}

// wantPrepared checks that nothing was explored or compiled. It also checks that nothing was
// tuned in a run of fewer than eight segments; after eight, launches may be tuned.
func wantPrepared(t *testing.T, s *millrace.Stats) {
	t.Helper()
	if s.Explorations+s.Searches+s.Runtime.Compiles+s.Runtime.CompileFails != 0 || s.Segments < 8 && s.Tunings != 0 {
		t.Errorf("%d explorations, %d searches, %d tunings, %d compiles, %d of them failed",
			s.Explorations, s.Searches, s.Tunings, s.Runtime.Compiles+s.Runtime.CompileFails, s.Runtime.CompileFails)
	}
	if s.Cache.Bundled == 0 || s.Cache.Foreign+s.Cache.Damaged+s.Cache.Refused+s.Cache.Misses != 0 || s.Fallbacks+s.Runtime.Fallbacks != 0 {
		t.Errorf("%+v, %d and %d fallbacks", s.Cache, s.Fallbacks, s.Runtime.Fallbacks)
	}
}

// shipReport is what the program prints.
type shipReport struct {
	First, Hot    time.Duration
	Probabilities []float32
	Start, Stats  millrace.Stats
}

// TestShippedExample builds the example with its plans, with cgo and without. Where it runs, nothing
// is explored, tuned or compiled by a C compiler, and the results are the same to the bit.
func TestShippedExample(t *testing.T) {
	s := newShipped(t)
	var plain, again, prepared, pure shipReport
	s.plain()
	s.run(&plain, "plain", "-json", "-record", s.path("plans.bundle"))
	s.run(&again, "plain", "-json")
	if plain.Stats.Explorations == 0 || again.Stats.Explorations == 0 {
		t.Error("the program is prepared before it is")
	}
	overlay := s.generate("plans.bundle")
	s.goCommand(nil, "build", overlay, "-o", s.path("prepared"), "./examples/shipped")
	s.run(&prepared, "prepared", "-json")
	wantPrepared(t, &prepared.Start)
	wantPrepared(t, &prepared.Stats)
	s.goCommand([]string{"CGO_ENABLED=0"}, "build", overlay, "-o", s.path("nocgo"), "./examples/shipped")
	s.run(&pure, "nocgo", "-json")
	// If the recording had time to tune, it tuned the engine with C.
	tuned := len(listed(t, "-kinds", "tuning", s.path("plans.bundle")))
	for _, stats := range []*millrace.Stats{&pure.Start, &pure.Stats} {
		if int(stats.Cache.Foreign) <= tuned {
			stats.Cache.Foreign = 0
		}
		wantPrepared(t, stats)
	}
	for name, r := range map[string]*shipReport{"again": &again, "prepared": &prepared, "without cgo": &pure} {
		if len(r.Probabilities) != 10 || !slices.Equal(r.Probabilities, plain.Probabilities) {
			t.Errorf("%s: %v, want %v", name, r.Probabilities, plain.Probabilities)
		}
		if run := r.Stats.Runtime; run.NativeKernels > 0 && run.Tier0*20 >= run.Launches { // small launches may be interpreted
			t.Errorf("%s: the interpreter ran %d of %d launches", name, run.Tier0, run.Launches)
		}
		t.Logf("%s: first call %v, then %v; of %d launches %d interpreted", name, r.First, r.Hot, r.Stats.Runtime.Launches, r.Stats.Runtime.Tier0)
	}
}
