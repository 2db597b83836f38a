package npy_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/npy"
)

// TestRows: parts of every file that NumPy wrote are the parts of what Load reads.
func TestRows(t *testing.T) {
	names, err := filepath.Glob("testdata/*.npy")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range names {
		all, err := npy.Load(name)
		if err != nil {
			if f, openErr := npy.Open(name); openErr == nil {
				t.Errorf("%s: opened, and Load says %v", name, err)
				f.Close()
			}
			continue
		}
		f, err := npy.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if all.Rank() == 0 {
			if _, err := f.Rows(0, 1); !errors.Is(err, millrace.ErrShape) {
				t.Errorf("%s: rows of a scalar: %v", name, err)
			}
			f.Close()
			continue
		}
		n := f.Len()
		if n != all.Dim(0) || f.Info().DType != all.DType() {
			t.Errorf("%s: %d rows of %v", name, n, f.Info().DType)
		}
		for i := 0; i <= n; i++ {
			for k := 0; k <= n-i; k++ {
				part, err := f.Rows(i, k)
				if err != nil {
					t.Fatalf("%s: rows %d to %d: %v", name, i, i+k, err)
				}
				filetest.Same(t, name, part, all.Slice(millrace.R(i, i+k)))
				read++
			}
		}
		for _, bad := range [][2]int{{-1, 1}, {0, -1}, {0, n + 1}, {n, 1}, {n + 1, 0}, {1, 1<<63 - 1}} {
			if _, err := f.Rows(bad[0], bad[1]); !errors.Is(err, millrace.ErrIndex) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: rows %v: %v", name, bad, err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := f.Rows(0, n); n > 0 && !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: after Close: %v", name, err)
		}
	}
	if read < 100 {
		t.Errorf("%d parts were read", read)
	}
}

// TestOffset: the elements are where Info says.
func TestOffset(t *testing.T) {
	for _, name := range []string{"float32.npy", "version2.npy", "version3.npy"} {
		data, err := os.ReadFile(filetest.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := npy.Stat(filetest.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		var elems bytes.Buffer
		x, err := npy.Load(filetest.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.WriteTo(&elems); err != nil || !bytes.Equal(data[info.Offset:], elems.Bytes()) {
			t.Errorf("%s: other elements at byte %d, %v", name, info.Offset, err)
		}
	}
}

// TestOpenCut: a file that lacks elements is found when it is opened, one that loses them
// when they are read.
func TestOpenCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := npy.Save(path, millrace.Ones(millrace.Float32, 100, 10)); err != nil {
		t.Fatal(err)
	}
	f, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 3000); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Rows(70, 30); !errors.Is(err, npy.ErrFormat) {
		t.Errorf("%v", err)
	}
	if _, err := f.Rows(0, 10); err != nil {
		t.Error(err)
	}
	if _, err := npy.Open(path); !errors.Is(err, npy.ErrFormat) || !strings.Contains(err.Error(), "elements are missing") {
		t.Errorf("%v", err)
	}
}

// TestWriter: a file that was written row by row has the bytes that Save writes.
func TestWriter(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		dt     millrace.DType
		row    []int
		pieces []int
	}{
		{millrace.Float32, []int{3, 2}, []int{1, 4, 0, 100}}, {millrace.Int64, nil, []int{5, 5}}, {millrace.Bool, []int{7}, []int{3}},
		{millrace.Float64, []int{2}, nil}, {millrace.Uint8, []int{0}, []int{3, 4}}, {millrace.Float16, []int{1000}, []int{999, 9001}},
	} {
		path := filepath.Join(dir, "x.npy")
		w, err := npy.Create(path, c.dt, c.row...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, k := range c.pieces {
			n += k
		}
		all := filetest.Ramp(t, c.dt, append([]int{n}, c.row...)...)
		at := 0
		for _, k := range c.pieces {
			if err := w.Append(all.Slice(millrace.R(at, at+k))); err != nil {
				t.Fatal(err)
			}
			at += k
		}
		if w.Len() != n {
			t.Errorf("%d rows, want %d", w.Len(), n)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		var want bytes.Buffer
		if err := npy.Write(&want, all); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%v%v: other bytes, %v", c.dt, c.row, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

func TestWriterErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := npy.Create(path, millrace.BFloat16); !errors.Is(err, millrace.ErrDType) {
		t.Error(err)
	}
	if _, err := npy.Create(path, millrace.Float32, -1); !errors.Is(err, millrace.ErrShape) {
		t.Error(err)
	}
	if _, err := npy.Create(dir, millrace.Float32); err == nil {
		t.Error("a folder was made a file")
	}
	w, err := npy.Create(path, millrace.Float32, 2)
	if err != nil {
		t.Fatal(err)
	}
	for want, bad := range map[error]*millrace.Tensor{
		millrace.ErrDType: millrace.Ones(millrace.Float64, 1, 2), millrace.ErrShape: millrace.Ones(millrace.Float32, 2),
		millrace.ErrIndex: millrace.Ones(millrace.Float32, 1, 2).Take(millrace.FromSlice([]int32{9}), 0),
	} {
		if err := w.Append(bad); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if w.Len() != 0 {
		t.Errorf("%d rows", w.Len())
	}
	w.Discard()
	if err := w.Append(millrace.Ones(millrace.Float32, 1, 2)); err == nil {
		t.Error("appended after Discard")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); string(got) != "old" {
		t.Errorf("the old file is %q, %v", got, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

// TestStream works through a file on a device that has a quarter of the memory.
func TestStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	const rows, columns, part = 4096, 256, 256 // 4 MiB, in parts of 256 KiB
	w, err := npy.Create(path, millrace.Float32, columns)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for i := range rows / part {
		x := millrace.Full(millrace.Float32, float64(i), part, columns)
		if err := w.Append(x); err != nil {
			t.Fatal(err)
		}
		x.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := millrace.OpenOptions(millrace.Options{Device: "cpu", MemoryLimit: 1 << 20, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := npy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := 0.0
	for i := 0; i < f.Len(); i += part {
		x, err := f.RowsOn(d, i, min(part, f.Len()-i))
		if err != nil {
			t.Fatal(err)
		}
		s, err := millrace.Item[float64](x.SumAs(millrace.Float64))
		if err != nil {
			t.Fatal(err)
		}
		sum += s
		x.Release()
	}
	if want := float64(columns*part) * 15 * 16 / 2; sum != want {
		t.Errorf("the sum is %v, want %v", sum, want)
	}
}
