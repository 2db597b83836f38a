package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestModuleFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"go.mod": "module x\n", "a.go": "", "sub/b.go": "", "vendor/v/v.go": "",
		"sub/vendor/v.go": "", "nested/go.mod": "module y\n", "nested/deep/c.go": "",
	})
	if err := os.Symlink("a.go", filepath.Join(root, "link.go")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	got, err := moduleFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.go", "go.mod", "sub/b.go"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	write(t, root, map[string]string{"A.go": ""})
	if _, err := os.Stat(filepath.Join(root, "a.go")); err == nil {
		if entries, _ := filepath.Glob(filepath.Join(root, "[aA].go")); len(entries) == 2 {
			if _, err := moduleFiles(root); err == nil || !strings.Contains(err.Error(), "case") {
				t.Errorf("a.go beside A.go: %v", err)
			}
		}
	}
}

func TestWriteZip(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"go.mod": "module x\n", "sub/b.go": "package sub\n"})
	var buf bytes.Buffer
	if err := writeZip(&buf, module, root, []string{"go.mod", "sub/b.go"}); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(buf.Bytes()), int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	want := []string{module + "@" + version + "/go.mod", module + "@" + version + "/sub/b.go"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestNestedVersion: the published version is the one that the nested module requires.
func TestNestedVersion(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("..", "..", "..", nested, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\t" + module + " " + version + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("%s/go.mod does not require %s %s", nested, module, version)
	}
	if strings.Contains(string(mod), "replace") {
		t.Errorf("%s/go.mod has a replace directive: nobody but this repository would follow it", nested)
	}
}

func TestOnlyAllowed(t *testing.T) {
	cache := t.TempDir()
	at := func(m, ext string) string { return "cache/download/" + m + "/@v/v1.0.0" + ext }
	write(t, cache, map[string]string{
		at(module, ".zip"): "", at("github.com/cespare/xxhash/v2", ".zip"): "", at("example.com/other", ".mod"): "",
	})
	if err := onlyAllowed(cache); err != nil {
		t.Error(err)
	}
	write(t, cache, map[string]string{at("example.com/other", ".zip"): ""})
	if err := onlyAllowed(cache); err == nil || !strings.Contains(err.Error(), "example.com/other") {
		t.Errorf("another module's archive: %v", err)
	}
}

func TestReadmeExample(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"ok.md":  "# x\n\n```sh\nls\n```\n\n```go\npackage main\n```\n\nprints\n\n```text\n1 2\n```\n",
		"bad.md": "```go\npackage main\n```\n",
	})
	p, out, err := readmeExample(filepath.Join(root, "ok.md"))
	if err != nil || p != "package main\n" || out != "1 2\n" {
		t.Errorf("got %q, %q, %v", p, out, err)
	}
	if _, _, err := readmeExample(filepath.Join(root, "bad.md")); err == nil {
		t.Error("no output block, and no error")
	}
}
