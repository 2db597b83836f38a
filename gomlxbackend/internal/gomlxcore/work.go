package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	module  = "github.com/gomlx/gomlx"
	compute = "github.com/gomlx/compute"
	root    = "github.com/millrace-go/millrace"
	adapter = root + "/gomlxbackend"
	xla     = "github.com/gomlx/go-xla"

	// perRun is how long the tests of a package may take: some of the Go
	// backend's never end on a machine with two cores.
	perRun = 6 * time.Minute
)

// files are written into the copy. Tests start the installer of XLA whatever
// backend they run on, which loads its library from the network: the module is
// replaced by one that has nothing to install.
var files = map[string]string{
	"gomlx/backends/default/millrace.go": "package _default\n\nimport _ \"" + adapter + "\"\n",
	"gomlx/support/testutil/millrace.go": "package testutil\n\nimport _ \"" + adapter + "\"\n",
	"xla/go.mod":                         "module " + xla + "\n\ngo 1.26\n",
	"xla/compute/xla/xla.go":             "package xla\n\nfunc AutoInstall() error { return nil }\n",
	"xla/compute/xla/autoinstall/xla.go": "package autoinstall\n",
}

// tags leave the XLA backend itself out.
const tags = "noxla"

// work is a folder with a copy of GoMLX.
type work struct{ dir, src string }

// versions are those of the modules.
type versions struct{ gomlx, compute string }

// prepare copies the module into dir, once, and ties in the backend of the
// module that the command is run in.
func prepare(v versions, dir string) (*work, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	w := &work{dir: dir, src: filepath.Join(dir, "gomlx")}
	if _, err := os.Stat(filepath.Join(w.src, "go.mod")); err == nil {
		return w, nil
	}
	var from struct{ Dir, Error string }
	out, err := command(dir, "go", "mod", "download", "-json", module+"@"+v.gomlx).Output()
	if jsonErr := json.Unmarshal(out, &from); jsonErr != nil || from.Error != "" {
		return nil, fmt.Errorf("go mod download %s@%s: %s (%v)", module, v.gomlx, from.Error, err)
	}
	if err := os.CopyFS(w.src, os.DirFS(from.Dir)); err != nil {
		return nil, err
	}
	if err := writable(w.src); err != nil {
		return nil, err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	where, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", root, adapter).Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	dirs := strings.Fields(string(where))
	if len(dirs) != 2 {
		return nil, fmt.Errorf("go list -m: %q", where)
	}
	edit := command(w.src, "go", "mod", "edit",
		"-require="+compute+"@"+v.compute, "-require="+root+"@v0.1.0", "-require="+adapter+"@v0.1.0",
		"-replace="+root+"="+dirs[0], "-replace="+adapter+"="+dirs[1], "-replace="+xla+"=../xla")
	if out, err := edit.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go mod edit: %w\n%s", err, out)
	}
	return w, nil
}

// writable lets files be replaced: those of the module cache are not to be.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return cmd
}

// packages are those with the graph, the layers and the models.
func (w *work) packages() ([]string, error) {
	out, err := command(w.src, "go", "list", "-tags="+tags, "./core/...", "./ml/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// build is the package's test binary, or "" where it has no tests.
func (w *work) build(pkg string) (string, error) {
	bin := filepath.Join(w.dir, "bin", strings.ReplaceAll(strings.TrimPrefix(pkg, module+"/"), "/", "_")+".test")
	out, err := command(w.src, "go", "test", "-c", "-tags="+tags, "-o", bin, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test -c %s: %w\n%s", pkg, err, out)
	}
	if _, err := os.Stat(bin); err != nil {
		return "", nil
	}
	return bin, nil
}

// result of a test or subtest.
type result struct{ outcome, output string }

var (
	topLevel = regexp.MustCompile(`(?m)^Test\w*$`)
	ended    = regexp.MustCompile(`^\s*--- (PASS|SKIP|FAIL): (\S+)`)
	started  = regexp.MustCompile(`^\s*=== (?:RUN|CONT|NAME)\s+(\S+)`)
)

// run runs a package's tests on a backend. A test that ends the process fails,
// and those behind it are run in another one.
func (w *work) run(pkg, bin, backend string) (map[string]result, error) {
	dir := filepath.Join(w.src, strings.TrimPrefix(pkg, module+"/"))
	list := exec.Command(bin, "-test.list=^Test")
	list.Dir = dir
	list.Env = append(os.Environ(), "GOMLX_BACKEND="+backend)
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s -test.list: %w", pkg, err)
	}
	var todo []string
	for _, name := range topLevel.FindAllString(string(out), -1) {
		if !slices.Contains(todo, name) {
			todo = append(todo, name)
		}
	}
	results := map[string]result{}
	for len(todo) > 0 {
		cmd := exec.Command(bin, "-test.v", "-test.timeout="+perRun.String(), "-test.run=^("+strings.Join(todo, "|")+")$")
		cmd.Dir, cmd.Env = dir, list.Env
		out, err := cmd.CombinedOutput()
		current := ""
		for _, line := range bytes.Split(out, []byte("\n")) {
			if m := started.FindSubmatch(line); m != nil {
				current = string(m[1])
			}
			if m := ended.FindSubmatch(line); m != nil {
				name := same(string(m[2]), backend)
				results[name] = result{string(m[1]), results[name].output}
				current = string(m[2])
			}
			if current != "" {
				name := same(current, backend)
				results[name] = result{results[name].outcome, results[name].output + string(line) + "\n"}
			}
		}
		left := slices.DeleteFunc(slices.Clone(todo), func(name string) bool { return results[name].outcome != "" })
		if len(left) > 0 && len(left) == len(todo) {
			// Not one test ended: the one that ran is the one to leave out.
			top, _, _ := strings.Cut(same(current, backend), "/")
			if !slices.Contains(left, top) {
				return nil, fmt.Errorf("%s with %s: no test ran: %v\n%s", pkg, backend, err, out)
			}
			left = slices.DeleteFunc(left, func(name string) bool { return name == top })
		}
		todo = left
	}
	for name, r := range results {
		if r.outcome == "" {
			results[name] = result{"no end", r.output}
		}
	}
	return results, nil
}

// same is a test's name whatever the backend that is part of it.
func same(name, backend string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if p == backend {
			parts[i] = "BACKEND"
		}
	}
	return strings.Join(parts, "/")
}
