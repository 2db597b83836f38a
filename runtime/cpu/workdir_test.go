//go:build cgo && unix

package cpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
