package tensorfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/millrace-go/millrace/internal/fault"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	for _, s := range []string{"first", "second"} {
		if err := Save(path, text(s)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != s {
			t.Errorf("%q, want %q", got, s)
		}
	}
	broken := errors.New("broken")
	err := Save(path, func(w io.Writer) error {
		text("thi")(w)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	fault.Set(fault.File, 1)
	defer fault.Reset()
	if err := Save(path, text("fourth")); err == nil {
		t.Error("a disk that fails, and no error")
	}
	if got := content(t, path); got != "second" {
		t.Errorf("after failures the file is %q", got)
	}
	if err := Save(dir, text("x")); err == nil {
		t.Error("saved over a directory")
	}
	if err := Save(filepath.Join(dir, "none", "x"), text("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestSaveKeepsLinkAndMode(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("no symbolic links and permissions to speak of")
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := Save(link, text("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o640 || content(t, file) != "new" {
		t.Errorf("mode %v, content %q, %v", info.Mode(), content(t, file), err)
	}
	if l, err := os.Readlink(link); l != "file" {
		t.Errorf("the link is %q, %v", l, err)
	}
	if err := Save(os.DevNull, text("x")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s is a file now: %v", os.DevNull, err)
	}
}

func TestLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("12345678"), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, r := range map[string]io.Reader{
		"file": f, "bytes": bytes.NewReader([]byte("12345678")), "buffer": bytes.NewBufferString("12345678"),
		"string": strings.NewReader("12345678"), "section": io.NewSectionReader(f, 0, 8),
	} {
		io.CopyN(io.Discard, r, 3)
		if got := Left(r); got != 5 {
			t.Errorf("%s: %d left, want 5", name, got)
		}
		if rest, err := io.ReadAll(r); string(rest) != "45678" {
			t.Errorf("%s: then it reads %q, %v", name, rest, err)
		}
	}
	if got := Left(io.MultiReader()); got != Unknown {
		t.Errorf("a stream has %d left", got)
	}
}

func TestSure(t *testing.T) {
	data := bytes.Repeat([]byte("abcdefg"), 100_000)
	n := int64(len(data))
	for _, need := range []int64{0, 1, firstPiece, firstPiece + 1, 3 * firstPiece, n} {
		src := bytes.NewReader(data)
		r, err := Sure(struct{ io.Reader }{src}, need, Unknown)
		if err != nil {
			t.Fatal(need, err)
		}
		got, err := io.ReadAll(io.LimitReader(r, need))
		if err != nil || !bytes.Equal(got, data[:need]) {
			t.Errorf("%d bytes: %d read, %v", need, len(got), err)
		}
		if int64(src.Len()) != n-need {
			t.Errorf("%d bytes: %d were taken", need, n-int64(src.Len()))
		}
	}
	for _, left := range []int64{Unknown, 0, n} {
		if _, err := Sure(bytes.NewReader(data), 1<<60, left); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a promise of 2^60 bytes with %d left: %v", left, err)
		}
	}
	broken := errors.New("broken")
	if _, err := Sure(iotest.ErrReader(broken), 1<<60, Unknown); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	src := bytes.NewReader(data)
	if r, err := Sure(src, n, n); r != io.Reader(src) || err != nil {
		t.Errorf("what is there is read into memory: %v", err)
	}
}
