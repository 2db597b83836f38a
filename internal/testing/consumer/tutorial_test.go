package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```(go|sh|text)\n(.*?)^```")

// TestTutorial follows docs/tutorial.md.
func TestTutorial(t *testing.T) { follow(t, "tutorial.md", 3) }

// TestWhen follows docs/when.md.
func TestWhen(t *testing.T) { follow(t, "when.md", 1) }

// TestErrors, TestMemory and those of guides follow their pages.
func TestErrors(t *testing.T)     { follow(t, "errors.md", 1) }
func TestMemory(t *testing.T)     { follow(t, "memory.md", 1) }
func TestHotLoop(t *testing.T)    { follow(t, "guides/hot-loop.md", 1) }
func TestDeployment(t *testing.T) { follow(t, "guides/deployment.md", 1) }
func TestManyFiles(t *testing.T)  { follow(t, "guides/many-files.md", 1) }
func TestServing(t *testing.T)    { follow(t, "guides/serving.md", 1) }
func TestGraphics(t *testing.T)   { follow(t, "guides/graphics.md", 1) }
func TestProfiling(t *testing.T)  { follow(t, "guides/profiling.md", 1) }

// follow runs a page's commands, in a separate module that uses this tree as millrace instead of
// the result of go get (which consumer checks). A text block is the output of the command block
// before it; a line … stands for any lines.
func follow(t *testing.T, page string, least int) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip("the tutorial's commands need ", tool)
		}
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	app := t.TempDir()
	write(t, app, map[string]string{"go.sum": string(sums)})
	got, texts := "", 0
	for _, b := range fence.FindAllStringSubmatch(strings.ReplaceAll(string(text), "localhost:8765", "localhost:"+port), -1) {
		switch b[1] {
		case "go":
			name, _, _ := strings.Cut(b[2], "\n")
			write(t, app, map[string]string{strings.TrimPrefix(name, "// "): b[2]})
		case "sh":
			commands := strings.ReplaceAll(b[2], "go get "+module, "go mod edit -require "+module+"@"+version+" -replace "+module+"='"+root+"'")
			cmd := exec.Command("bash", "-ec", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+commands)
			cmd.Dir, cmd.Env = app, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "MILLRACE_CACHE=off")
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s%v\n%s%s", commands, err, out, errs.String())
			}
			got = string(out)
		case "text":
			texts++
			want := strings.ReplaceAll(regexp.QuoteMeta(b[2]), "…\n", "(?s:.*)")
			if !regexp.MustCompile("^" + want + "$").MatchString(got) {
				t.Errorf("%s says\n%sand it prints\n%s", page, b[2], got)
			}
		}
	}
	if texts < least {
		t.Errorf("%d blocks of output", texts)
	}
}
