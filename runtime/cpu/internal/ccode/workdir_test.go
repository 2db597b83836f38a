//go:build cgo && unix

package ccode

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWorkDirIsNotSwapped checks that a directory put in the place of the private one is not used:
// reads return what was made in the original, or fail.
func TestWorkDirIsNotSwapped(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := newWorkDir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.remove()
	object := filepath.Join(d.path, "k1.so")
	if err := os.WriteFile(object, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	moved := d.path + "-moved"
	if err := os.Rename(d.path, moved); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(moved)
	if err := os.Mkdir(d.path, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"k1.so", "k2.so"} {
		if err := os.WriteFile(filepath.Join(d.path, name), []byte("another's"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := d.take(object); err != nil || string(data) != "mine" {
		t.Errorf("read %q, %v", data, err)
	}
	if data, err := d.take(filepath.Join(d.path, "k2.so")); err == nil {
		t.Errorf("read %q, which was never made there", data)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(moved, "k3.so")); err != nil {
		t.Fatal(err)
	}
	if data, err := d.take(filepath.Join(d.path, "k3.so")); err == nil {
		t.Errorf("read %q through a link that leads outside", data)
	}
}

// TestLoadedPathsAreOwn checks that objects are loaded by path only if no other user can change
// the path's target.
func TestLoadedPathsAreOwn(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		owner int
		says  string // "": it may be used
	}{
		{"own", 0o700, 0, ""},
		{"readable", 0o755, 0, ""},
		{"sticky", 0o777 | os.ModeSticky, 0, ""},
		{"world-writable", 0o777, 0, "others can write to"},
		{"group-writable", 0o770, 0, "others can write to"},
		{"foreign", 0o755, 65534, "belongs to another user"},
		{"foreign and sticky", 0o777 | os.ModeSticky, 65534, "belongs to another user"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "parent")
			tmp := filepath.Join(parent, "tmp")
			if err := os.MkdirAll(tmp, 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TMPDIR", tmp)
			d, err := newWorkDir()
			if err != nil {
				t.Fatal(err)
			}
			defer d.remove()
			for _, dir := range []string{tmp, parent} { // the parent, and a directory further up
				if err := os.Chmod(dir, c.mode); err != nil {
					t.Fatal(err)
				}
				if c.owner != 0 {
					if err := os.Chown(dir, c.owner, c.owner); err != nil {
						t.Skip("not the administrator: ", err)
					}
				}
				err := d.checkParents()
				if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "set TMPDIR")) {
					t.Errorf("%s: %v, want %q", dir, err, c.says)
				}
				if err := os.Chmod(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chown(dir, os.Geteuid(), -1); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(d.path, 0o770); err != nil {
				t.Fatal(err)
			}
			if err := d.check(); err == nil || !strings.Contains(err.Error(), "set TMPDIR") {
				t.Errorf("a directory that others can write to: %v", err)
			}
		})
	}
}

// TestSweep checks that directories of dead owners are removed and others stay.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	live, err := newWorkDir()
	if err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	dead, err := newWorkDir()
	if err != nil {
		t.Fatal(err)
	}
	dead.lock.Close() // as when its process ends
	young, old := filepath.Join(os.TempDir(), newPrefix+"1"), filepath.Join(os.TempDir(), newPrefix+"2")
	for _, dir := range []string{young, old} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if ago := time.Now().Add(-2 * abandoned); os.Chtimes(old, ago, ago) != nil {
		t.Fatal("no time of a directory can be set")
	}
	sweep(os.TempDir())
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("a directory whose owner died before it was locked: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a directory that is being made: %v", err)
	}
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("a dead owner's directory: %v", err)
	}
	if _, err := os.Stat(live.path); err != nil {
		t.Errorf("a live owner's directory: %v", err)
	}
	if info, err := os.Stat(live.path); err == nil && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
}

// TestSweepAtOnce starts many processes' sweeps at once: none may remove a directory that another
// has just made and not locked yet.
func TestSweepAtOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				d, err := newWorkDir()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(filepath.Join(d.path, lockName)); err != nil {
					t.Error("a new directory:", err)
				}
				d.remove()
			}
		})
	}
	all.Wait()
}
