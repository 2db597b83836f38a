package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/npy"
)

// arrays are those of make.py's archives.
func arrays(t *testing.T) map[string]*millrace.Tensor {
	return map[string]*millrace.Tensor{
		"weights": filetest.Ramp(t, millrace.Float32, 2, 3), "bias": filetest.Ramp(t, millrace.Float64, 3), "steps": millrace.Scalar[int64](7),
	}
}

func sameAll(t *testing.T, name string, got, want map[string]*millrace.Tensor) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d arrays, want %d", name, len(got), len(want))
	}
	for key, w := range want {
		filetest.Same(t, name+": "+key, got[key], w)
	}
}

func TestLoadArchive(t *testing.T) {
	want := arrays(t)
	for _, name := range []string{"stored.npz", "compressed.npz"} {
		got, err := npy.LoadArchive(filetest.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		sameAll(t, name, got, want)
		a, err := npy.OpenArchive(filetest.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		if names := a.Names(); !slices.Equal(names, []string{"weights", "bias", "steps"}) {
			t.Errorf("%s holds %q", name, names)
		}
		if info, err := a.Stat("weights"); err != nil || info.DType != millrace.Float32 || info.Bytes() != 24 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		if _, err := a.Tensor("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an array that is not there: %v", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Tensor("weights"); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestSaveArchive(t *testing.T) {
	want := arrays(t)
	want["large"] = millrace.Arange(millrace.Float32, 0, 500_000, 1)
	want["folder/ä"] = millrace.Zeros(millrace.Bool, 0)
	want["x.npy"] = filetest.Ramp(t, millrace.Int64, 5)
	for name, save := range map[string]func(string, map[string]*millrace.Tensor) error{"stored": npy.SaveArchive, "compressed": npy.SaveCompressed} {
		var before []byte
		path := filepath.Join(t.TempDir(), "x.npz")
		for range 2 {
			if err := save(path, want); err != nil {
				t.Fatal(err)
			}
			got, err := npy.LoadArchive(path)
			if err != nil {
				t.Fatal(err)
			}
			sameAll(t, name, got, want)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if before != nil && !bytes.Equal(before, data) {
				t.Errorf("%s: the second file differs", name)
			}
			before = data
		}
		if compressed := len(before) < 3<<19; compressed != (name == "compressed") {
			t.Errorf("%s: %d bytes", name, len(before))
		}
	}
	var w bytes.Buffer
	if err := npy.WriteArchive(&w, nil); err != nil {
		t.Fatal(err)
	}
	if a, err := npy.NewArchive(bytes.NewReader(w.Bytes()), int64(w.Len())); err != nil || len(a.Names()) != 0 {
		t.Errorf("an empty archive: %v", err)
	}
}

func TestSaveArchiveErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npz")
	for _, bad := range []map[string]*millrace.Tensor{
		{"a": nil}, {"\xff": millrace.Ones(millrace.Int32)}, {"a\x00": millrace.Ones(millrace.Int32)}, {"a": millrace.Zeros(millrace.Int32, -1)},
	} {
		var w bytes.Buffer
		if npy.SaveArchive(path, bad) == nil || npy.WriteArchive(&w, bad) == nil || w.Len() > 0 {
			t.Errorf("%v: no error, or %d bytes", bad, w.Len())
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

func TestDamagedArchives(t *testing.T) {
	data, err := os.ReadFile(filetest.Path("stored.npz"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(data []byte) error {
		a, err := npy.NewArchive(bytes.NewReader(data), int64(len(data)))
		for i := 0; err == nil && i < len(a.Names()); i++ {
			_, err = a.Tensor(a.Names()[i])
		}
		return err
	}
	if err := open(data); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(data)
	flipped[bytes.Index(data, []byte("'shape': (2, 3)"))+70] ^= 1 // an element, or the header
	packed, err := os.ReadFile(filetest.Path("compressed.npz"))
	if err != nil {
		t.Fatal(err)
	}
	names := binary.LittleEndian.Uint16(packed[26:]) + binary.LittleEndian.Uint16(packed[28:])
	packed[30+names] = 0xff // there is no such kind of block
	twice := func(name string) []byte {
		var w bytes.Buffer
		z := zip.NewWriter(&w)
		for range 2 {
			if _, err := z.Create(name); err != nil {
				t.Fatal(err)
			}
		}
		z.Close()
		return w.Bytes()
	}
	// The directory has the place of the file's header, in 64 bits here.
	elsewhere := func(at uint64) []byte {
		var w bytes.Buffer
		z := zip.NewWriter(&w)
		extra := binary.LittleEndian.AppendUint64([]byte{1, 0, 8, 0}, at)
		if _, err := z.CreateHeader(&zip.FileHeader{Name: "a.npy", Extra: extra}); err != nil {
			t.Fatal(err)
		}
		z.Close()
		copy(w.Bytes()[bytes.LastIndex(w.Bytes(), []byte("PK\x01\x02"))+42:], "\xff\xff\xff\xff")
		return w.Bytes()
	}
	for name, bad := range map[string][]byte{
		"before the start": elsewhere(1 << 63), "behind the end": elsewhere(1 << 40),
		"no archive": []byte("x"), "cut off": data[:len(data)-30], "a bit flipped": flipped, "packed by nobody": packed, "twice": twice("a.npy"), "empty array": twice("a.npy")[:0],
	} {
		if err := open(bad); !errors.Is(err, npy.ErrFormat) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	beside := func(names ...string) []byte {
		var w, elems bytes.Buffer
		if err := npy.Write(&elems, millrace.Ones(millrace.Float32, 2)); err != nil {
			t.Fatal(err)
		}
		z := zip.NewWriter(&w)
		for _, name := range names {
			if f, err := z.Create(name); err != nil {
				t.Fatal(err)
			} else if strings.HasSuffix(name, ".npy") {
				f.Write(elems.Bytes())
			}
		}
		z.Close()
		return w.Bytes()
	}
	if err := open(beside("readme.txt", "a.npy")); err != nil {
		t.Errorf("a file that is no array: %v", err)
	}
	if err := open(beside("readme.txt", "more.txt")); !errors.Is(err, npy.ErrFormat) || !strings.Contains(err.Error(), "none of its 2 files is an array") {
		t.Errorf("files that are no arrays: %v", err)
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, data[:100], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := npy.OpenArchive(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

// A small archive whose array promises 2^50 bytes is refused when they do not
// come, having taken no memory for them.
func TestArchivePromises(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		var w bytes.Buffer
		z := zip.NewWriter(&w)
		f, err := z.CreateHeader(&zip.FileHeader{Name: "a.npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(file("{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 262144)}", strings.Repeat("x", 200_000))))
		z.Close()
		n := filetest.Allocated(func() {
			a, err := npy.NewArchive(bytes.NewReader(w.Bytes()), int64(w.Len()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Tensor("a"); !errors.Is(err, npy.ErrFormat) {
				t.Error(err)
			}
		})
		if n > 3<<20 {
			t.Errorf("method %d: %d bytes were allocated", method, n)
		}
	}
}

// FuzzArchive: what can be read can be written, and is then read as it was.
func FuzzArchive(f *testing.F) {
	for _, name := range []string{"stored.npz", "compressed.npz"} {
		data, err := os.ReadFile(filetest.Path(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := npy.NewArchive(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		all := map[string]*millrace.Tensor{}
		for _, name := range a.Names() {
			if x, err := a.Tensor(name); err == nil {
				all[name] = x
			}
		}
		var again bytes.Buffer
		if npy.WriteArchive(&again, all) != nil {
			return // a name that no archive should have
		}
		b, err := npy.NewArchive(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range all {
			y, err := b.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			filetest.Same(t, name, y, x)
		}
	})
}
