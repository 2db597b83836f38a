package glsl

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen/wgsl"
	"github.com/millrace-go/millrace/internal/testing/shadertest"
)

// TestGolden checks the text of some shaders, and of all ops. The cases are those of WGSL. The texts
// differ only in words: control flow and assignments are the same, line by line.
func TestGolden(t *testing.T) {
	texts := shadertest.Golden(t, Dialect, "testdata")
	others := shadertest.Golden(t, wgsl.Dialect, "../wgsl/testdata")
	if len(texts) != len(others) || len(texts) == 0 {
		t.Fatalf("%d shaders, WGSL has %d", len(texts), len(others))
	}
	for i := range texts {
		if others[i] == "" { // subgroups
			continue
		}
		got, want := shape(strings.TrimPrefix(texts[i], Dialect.Header+Dialect.Helpers)), shape(others[i])
		if !slices.Equal(got, want) {
			t.Errorf("shader %d has the structure\n%s\nin WGSL\n%s\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"), texts[i])
		}
	}
}

var target = regexp.MustCompile(`^(?:precise )?(?:[a-z0-9<>]+ )?([a-z0-9_]+)(?:\[.*\])?(?:\.[xyzw])? = `)

// shape is the structure of a shader in any language: for each line the block that it begins, or the
// variable to which it assigns.
func shape(text string) (list []string) {
	for line := range strings.Lines(text) {
		line = strings.Trim(line, "\t\n")
		word, _, _ := strings.Cut(line, " ")
		m := target.FindStringSubmatch(line)
		switch {
		case slices.Contains([]string{"if", "for", "}", "{", "return;", "return"}, word):
			list = append(list, word)
		case m != nil && !slices.Contains([]string{"id", "lane"}, m[1]) && !strings.HasPrefix(m[1], "t_"):
			list = append(list, m[1])
		}
	}
	return list
}

// TestCompilers checks that the reference compiler, if installed, accepts every shader.
func TestCompilers(t *testing.T) {
	compiler, err := exec.LookPath("glslangValidator")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no glslangValidator (Debian: glslang-tools)")
	}
	dir := t.TempDir()
	var files []string
	for i, text := range shadertest.Golden(t, Dialect, "testdata") {
		if text == "" {
			continue
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.comp", i)))
		if err := os.WriteFile(files[len(files)-1], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(compiler, files...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	bad := filepath.Join(dir, "bad.comp")
	if err := os.WriteFile(bad, []byte(Dialect.Header+Dialect.Helpers+"void main() { uint x = 1.0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if exec.Command(compiler, bad).Run() == nil {
		t.Error("a shader that is none was taken")
	}
}
