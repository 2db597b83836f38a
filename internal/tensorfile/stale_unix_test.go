//go:build unix && !solaris && !aix

package tensorfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestSaveRemovesStale: Save removes temporary files of its path that no writer has, and nothing
// else.
func TestSaveRemovesStale(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writing, err := Begin(at("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Discard()
	for _, name := range []string{".a.01234567.tmp", ".a.89abcdef.tmp", ".b.01234567.tmp", ".a.0123456.tmp", ".a.0123456g.tmp", "a.01234567.tmp", ".ab.01234567.tmp"} {
		if err := os.WriteFile(at(name), []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at(".a.00000000.tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", at(".a.00000001.tmp")); err != nil {
		t.Fatal(err)
	}
	if err := Save(at("a"), text("new")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{".a.00000000.tmp", ".a.00000001.tmp", ".a.0123456.tmp", ".a.0123456g.tmp", ".ab.01234567.tmp", ".b.01234567.tmp",
		filepath.Base(writing.Name()), "a", "a.01234567.tmp"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are\n%q, want\n%q", left, want)
	}
	if err := writing.Commit(); err != nil || content(t, at("a")) != "" {
		t.Errorf("the other writer: %v", err)
	}
}

// TestSaveAtOnce: writers of one path never take each other's files for stale.
func TestSaveAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 40 {
				if err := Save(path, text(fmt.Sprintf("writer %d, file %2d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := content(t, path); len(got) != len("writer 0, file 39") {
		t.Errorf("the file has %q", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
}
