package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestPerfMap(t *testing.T) {
	c := mustMap(t, justReturn)
	defer runtime.KeepAlive(c)
	if err := Name(c, 0, 1, "nobody listens"); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "perf.map")
	f, err := createPerfMap(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	perfMap.Store(f)
	defer perfMap.Store(nil)
	if err := Name(c, 2, 17, "gelu\n0 0 forged"); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	if want := fmt.Sprintf("%x 11 gelu 0 0 forged\n", c.Addr(2)); string(text) != want {
		t.Errorf("%q, want %q", text, want)
	}
	// An existing file is not touched, and links are not followed.
	if _, err := createPerfMap(path); !os.IsExist(err) {
		t.Errorf("over a file: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "target"), link); err != nil {
		t.Fatal(err)
	}
	if _, err := createPerfMap(link); err == nil {
		t.Error("a link was followed")
	}
}
