//go:build unix

package plancache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Directories that others could write to are refused; the error says how to correct that.
func TestRefusedDirectories(t *testing.T) {
	type kase struct {
		name, why string
		make      func(t *testing.T, dir string) string // returns the directory to open
	}
	mkdir := func(t *testing.T, path string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	cases := []kase{
		{"group-writable", "can be written by others", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c", 0o770)
			return dir + "/c"
		}},
		{"world-writable", "can be written by others", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c", 0o777|os.ModeSticky)
			return dir + "/c"
		}},
		{"folder group-writable", "can be written by others", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c/"+folder, 0o720)
			return dir + "/c"
		}},
		{"link", "is a symbolic link", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/real", 0o700)
			if err := os.Symlink("real", dir+"/c"); err != nil {
				t.Fatal(err)
			}
			return dir + "/c"
		}},
		{"folder link", "is a symbolic link", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c/real", 0o700)
			if err := os.Symlink("real", dir+"/c/"+folder); err != nil {
				t.Fatal(err)
			}
			return dir + "/c"
		}},
		{"folder link outwards", "is a symbolic link", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c", 0o700)
			if err := os.Symlink(os.TempDir(), dir+"/c/"+folder); err != nil {
				t.Fatal(err)
			}
			return dir + "/c"
		}},
		{"a file", "is a file", func(t *testing.T, dir string) string {
			if err := os.WriteFile(dir+"/c", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir + "/c"
		}},
		{"folder is a file", "is a file", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c", 0o700)
			if err := os.WriteFile(filepath.Join(dir, "c", folder), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir + "/c"
		}},
		{"foreign", "belongs to user", func(t *testing.T, dir string) string {
			if os.Geteuid() != 0 {
				return "/usr" // the administrator's
			}
			mkdir(t, dir+"/c", 0o700)
			if err := os.Chown(dir+"/c", 65534, 65534); err != nil {
				t.Skip("no other user: ", err)
			}
			return dir + "/c"
		}},
		{"folder foreign", "belongs to user", func(t *testing.T, dir string) string {
			mkdir(t, dir+"/c/"+folder, 0o700)
			if err := os.Chown(dir+"/c/"+folder, 65534, 65534); err != nil {
				t.Skip("not the administrator: ", err)
			}
			return dir + "/c"
		}},
	}
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			dir := k.make(t, t.TempDir())
			c, err := Open(dir, Options{})
			if err == nil {
				c.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("no path in %q", err)
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Why == "" || !strings.Contains(err.Error(), k.why) || !strings.Contains(err.Error(), Variable) {
				t.Errorf("got %v, want %s and what to do", err, k.why)
			}
		})
	}
}

// A read-only cache still returns its entries.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	put(t, openTest(t, dir, Options{}), "plan", "k", "v")
	inner := filepath.Join(dir, folder)
	if err := os.Chmod(inner, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(inner, 0o700) })
	obeyModes(t)
	c := openTest(t, dir, Options{})
	wantEntry(t, c, "plan", "k", "v")
	if err := c.Put("plan", "other", nil); err == nil || c.Stats().Failed != 1 {
		t.Errorf("written: %v, %+v", err, c.Stats())
	}
}

func TestDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/x/cache")
	t.Setenv("HOME", "/x")
	for _, k := range []struct{ env, want string }{{"off", Off}, {"/y/z", "/y/z"}} {
		t.Setenv(Variable, k.env)
		if got, err := Dir(); got != k.want || err != nil {
			t.Errorf("%s=%s: %q, %v", Variable, k.env, got, err)
		}
	}
	t.Setenv(Variable, "")
	if got, err := Dir(); filepath.Base(got) != "millrace" || !strings.HasPrefix(got, "/x/") || err != nil {
		t.Errorf("by default: %q, %v", got, err)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if got, err := Dir(); err == nil || !strings.Contains(err.Error(), Variable) {
		t.Errorf("without a home: %q, %v", got, err)
	}
}

// Directories that Open makes are private.
func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	openTest(t, dir, Options{})
	for _, path := range []string{dir, filepath.Join(dir, folder)} {
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, is.Mode(), err)
		}
	}
}

// A directory that is deleted while it is in use is an empty cache that cannot be written to. The
// failures are counted, and after some of them no more writes are tried.
func TestDeletedWhileOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	c := openTest(t, dir, Options{})
	put(t, c, "plan", "k", "v")
	wantEntry(t, c, "plan", "k", "v")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Get("plan", "k"); ok || c.Stats().Misses != 1 || c.Stats().Failed != 0 {
		t.Errorf("found %v, %+v", ok, c.Stats())
	}
	for i := range giveUp {
		if err := c.Put("plan", "k", []byte("v")); err == nil || c.Stats().Failed != int64(i+1) {
			t.Errorf("written: %v, %+v", err, c.Stats())
		}
	}
	if !c.Stats().WritesDisabled {
		t.Errorf("still writing: %+v", c.Stats())
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it was made again by its name, which could be another's by now")
	}
	again := openTest(t, dir, Options{})
	put(t, again, "plan", "k", "v")
	wantEntry(t, again, "plan", "k", "v")
	if _, ok := c.Get("plan", "k"); ok {
		t.Error("the old cache reads the new directory")
	}
}
