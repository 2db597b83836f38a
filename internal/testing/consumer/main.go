// Command consumer acts as a first-time user: it publishes the working tree as modules on a file://
// proxy. In an empty app elsewhere it gets the root module, builds and runs the README's example,
// tidies, vendors, and installs fusebench. In another app it gets the nested module gomlxbackend
// and runs a graph, and it installs and runs the program that trains with GoMLX.
//
// It fails if the root package, npy or safetensors makes its importers download anything but
// xxhash. It does not touch the user's module cache.
//
// Input: the working tree. Output: a failure if a step of a first-time user fails. Read main.go
// first.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The version is the one that gomlxbackend requires.
const (
	module  = "github.com/millrace-go/millrace"
	version = "v0.1.0"
	nested  = "gomlxbackend"   // a nested module in this folder
	trainer = "examples/gomlx" // a program that uses it, likewise
)

// allowed are the modules that an importer of the root package may download.
var allowed = []string{"github.com/cespare/xxhash/v2", module}

func main() {
	if err := check(); err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
	fmt.Println("consumer: ok")
}

func check() error {
	// In a workspace the go command would list all its modules.
	root, err := goOutput(".", append(os.Environ(), "GOWORK=off"), "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	example, want, err := readmeExample(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "millrace-consumer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for path, dir := range map[string]string{
		module: root, module + "/" + nested: filepath.Join(root, nested), module + "/" + trainer: filepath.Join(root, trainer),
	} {
		files, err := moduleFiles(dir)
		if err != nil {
			return err
		}
		if err := publish(filepath.Join(work, "proxy"), path, dir, files); err != nil {
			return err
		}
	}
	env, err := consumerEnv(work)
	if err != nil {
		return err
	}
	if err := consume(work, env, example, want); err != nil {
		return err
	}
	if err := consumeNested(work, env, filepath.Join(root, nested, "testdata", "consumer.go.txt")); err != nil {
		return err
	}
	return installTrainer(work, env)
}

// consumerEnv is the environment of the empty app: a separate module cache, and as proxies the
// published module, then the user's cache (for offline use), then the user's proxy.
func consumerEnv(work string) ([]string, error) {
	cache, err := goOutput(".", nil, "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	proxy, err := goOutput(".", nil, "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"GOPROXY="+fileURL(filepath.Join(work, "proxy"))+","+fileURL(filepath.Join(cache, "cache", "download"))+","+proxy,
		"GONOSUMDB="+module,
		"GOMODCACHE="+filepath.Join(work, "modcache"),
		"GOBIN="+filepath.Join(work, "bin"),
		// A writable cache can be removed. With -trimpath the build does not depend on its folder:
		// the C is then compiled once for all of this.
		"GOFLAGS=-modcacherw -trimpath",
		"GOWORK=off",
		"MILLRACE_REQUIRE=",
	), nil
}

func fileURL(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a Windows drive
	}
	return "file://" + p
}

func consume(work string, env []string, example, want string) error {
	app := filepath.Join(work, "app")
	if err := os.Mkdir(app, 0o777); err != nil {
		return err
	}
	run := func(args ...string) error {
		fmt.Println("consumer: go", strings.Join(args, " "))
		_, err := goOutput(app, env, args...)
		return err
	}
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(example), 0o666); err != nil {
		return err
	}
	// Reading files must not cost more downloads either.
	files := "package main\n\nimport (\n\t_ \"" + module + "/npy\"\n\t_ \"" + module + "/safetensors\"\n)\n"
	if err := os.WriteFile(filepath.Join(app, "files.go"), []byte(files), 0o666); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/app"},
		{"get", module + "@" + version},
		{"build", "-o", filepath.Join(work, "bin", "app"), "."},
		{"mod", "tidy"},
	} {
		if err := run(args...); err != nil {
			return err
		}
	}
	got, err := exec.Command(filepath.Join(work, "bin", "app")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the README's example: %w\n%s", err, got)
	}
	if strings.TrimSpace(string(got)) != strings.TrimSpace(want) {
		return fmt.Errorf("the README's example prints\n%s\nand the README says\n%s", got, want)
	}
	if err := run("mod", "vendor"); err != nil {
		return err
	}
	if err := run("build", "-mod=vendor", "-o", filepath.Join(work, "bin", "vendored"), "."); err != nil {
		return err
	}
	if err := onlyAllowed(filepath.Join(work, "modcache")); err != nil {
		return err
	}
	// From here on other modules are allowed: fusebench is not imported.
	if err := run("install", module+"/cmd/fusebench@"+version); err != nil {
		return err
	}
	out, err := exec.Command(filepath.Join(work, "bin", "fusebench"), "devices").CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusebench devices: %w\n%s", err, out)
	}
	return nil
}

// onlyAllowed reports downloaded archives of other modules. (A go.mod file alone does not count:
// the go command reads some to choose versions.)
func onlyAllowed(modcache string) error {
	base := filepath.Join(modcache, "cache", "download")
	var bad []string
	err := filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if filepath.Ext(p) != ".zip" {
			return nil
		}
		rel, err := filepath.Rel(base, filepath.Dir(filepath.Dir(p)))
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); !slices.Contains(allowed, rel) {
			bad = append(bad, rel)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("an importer of the root package downloads %s", strings.Join(bad, ", "))
	}
	return nil
}

// goOutput runs the go command and returns its trimmed output. A nil env is this process's.
func goOutput(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = dir, env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}
