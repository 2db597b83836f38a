package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
)

// write makes a file and returns its path.
func write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// idx makes the bytes of an IDX file.
func idx(kind byte, dims []uint32, elems any) []byte {
	b := []byte{0, 0, kind, byte(len(dims))}
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	b, err := binary.Append(b, binary.BigEndian, elems)
	if err != nil {
		panic(err)
	}
	return b
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// room allocates memory for a record.
func room(s data.Source) []any {
	var dst []any
	for _, f := range s.Fields() {
		n := 1
		for _, d := range f.Shape {
			n *= d
		}
		switch f.DType {
		case millrace.Uint8:
			dst = append(dst, make([]uint8, n))
		case millrace.Int8:
			dst = append(dst, make([]int8, n))
		case millrace.Int16:
			dst = append(dst, make([]int16, n))
		case millrace.Int32:
			dst = append(dst, make([]int32, n))
		case millrace.Float32:
			dst = append(dst, make([]float32, n))
		case millrace.Float64:
			dst = append(dst, make([]float64, n))
		default:
			panic(f.DType)
		}
	}
	return dst
}

// record returns a record of a source, as text.
func record(t testing.TB, s data.Source, i int) string {
	t.Helper()
	dst := room(s)
	if err := s.Read(i, dst); err != nil {
		t.Fatal(err)
	}
	return strings.Trim(fmt.Sprint(dst), "[]")
}

func TestIDX(t *testing.T) {
	for _, c := range []struct {
		kind   byte
		dt     millrace.DType
		elems  any
		second string
	}{
		{0x08, millrace.Uint8, []uint8{1, 2, 3, 253, 254, 255}, "253 254 255"},
		{0x09, millrace.Int8, []int8{1, 2, 3, -4, 5, -128}, "-4 5 -128"},
		{0x0B, millrace.Int16, []int16{1, 2, 3, -4, 5, -32768}, "-4 5 -32768"},
		{0x0C, millrace.Int32, []int32{1, 2, 3, -4, 5, math.MinInt32}, "-4 5 -2147483648"},
		{0x0D, millrace.Float32, []float32{1, 2, 3, -4.5, 0.25, 1e30}, "-4.5 0.25 1e+30"},
		{0x0E, millrace.Float64, []float64{1, 2, 3, -4.5, 0.25, 1e300}, "-4.5 0.25 1e+300"},
	} {
		b := idx(c.kind, []uint32{2, 3}, c.elems)
		for name, b := range map[string][]byte{"x.idx": b, "x.idx.gz": zipped(b)} {
			s, err := data.IDX(write(t, name, b))
			if err != nil {
				t.Fatal(name, c.dt, err)
			}
			f := s.Fields()
			if s.Len() != 2 || len(f) != 1 || f[0].DType != c.dt || !slices.Equal(f[0].Shape, []int{3}) {
				t.Errorf("%s: %d records of %v, want 2 of %v[3]", name, s.Len(), f, c.dt)
			}
			if got := record(t, s, 1); got != c.second {
				t.Errorf("%s, %v: record 1 is %s, want %s", name, c.dt, got, c.second)
			}
		}
	}
	// Records longer than one read.
	long := make([]float32, 3*5000)
	for i := range long {
		long[i] = float32(i)
	}
	s, err := data.IDX(write(t, "long", idx(0x0D, []uint32{3, 50, 100}, long)))
	if err != nil {
		t.Fatal(err)
	}
	dst := room(s)
	if err := s.Read(2, dst); err != nil || !slices.Equal(dst[0].([]float32), long[10000:]) {
		t.Error("a long record differs", err)
	}
}

func TestMNIST(t *testing.T) {
	pixels := make([]uint8, 5*4*3)
	for i := range pixels {
		pixels[i] = uint8(i)
	}
	images := write(t, "images", zipped(idx(8, []uint32{5, 4, 3}, pixels)))
	labels := write(t, "labels", idx(8, []uint32{5}, []uint8{0, 9, 1, 10, 2}))
	s, err := data.MNIST(images, labels, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Len(), s.Fields()); got != "5 [image uint8[1 4 3] label int32[]]" {
		t.Error(got)
	}
	if got := record(t, s, 1); got != "12 13 14 15 16 17 18 19 20 21 22 23] [9" {
		t.Error(got)
	}
	err = s.Read(3, room(s))
	if re, ok := errors.AsType[*data.RecordError](err); !ok || re.File != labels || re.Record != 3 || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), "label 10 is not one of 10 classes") {
		t.Error(err)
	}
	few := write(t, "few", idx(8, []uint32{4}, []uint8{0, 9, 1, 10}))
	for name, files := range map[string][2]string{"numbers differ": {images, few}, ", not images": {labels, labels}, ", not labels": {images, images}} {
		if _, err := data.MNIST(files[0], files[1], 10); !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), files[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := data.MNIST(images, labels+"x", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestIDXBadFiles(t *testing.T) {
	good := idx(8, []uint32{3, 2}, []uint8{1, 2, 3, 4, 5, 6})
	huge := idx(8, []uint32{40000, 50000}, []uint8{1})
	cut := zipped(idx(8, []uint32{1000, 100}, bytes.Repeat([]byte("some text"), 100000/9+1)[:100000]))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, "EOF"},
		"one byte":         {good[:1], "EOF"},
		"half a header":    {good[:6], "EOF"},
		"header only":      {good[:12], "record 0 is cut off"},
		"cut":              {good[:15], "record 1 is cut off"},
		"too long":         {append(slices.Clone(good), 1), "after the last of 3 records"},
		"magic":            {append([]byte{1}, good[1:]...), "no IDX file"},
		"kind":             {idx(0x0A, []uint32{3, 2}, []uint8{1, 2, 3, 4, 5, 6}), "kind 0xa"},
		"no dimension":     {idx(8, nil, []uint8{1}), "0 dimensions"},
		"many dimensions":  {idx(8, slices.Repeat([]uint32{1}, 9), []uint8{1}), "9 dimensions"},
		"no records":       {idx(8, []uint32{0, 2}, []uint8{}), "no elements"},
		"records of 0":     {idx(8, []uint32{2000000000, 0}, []uint8{}), "no elements"},
		"lying":            {huge, "record 0 is cut off"},
		"overflow":         {idx(0x0E, []uint32{4000000000, 4000000000, 4000000000}, []uint8{1}), "addressed"},
		"compressed lying": {zipped(huge), "record 0 is cut off"},
		"compressed long":  {zipped(append(slices.Clone(good), 1)), "after the last of 3 records"},
		"compressed cut":   {cut[:len(cut)/2], "EOF"},
		"compressed empty": {zipped(nil), "EOF"},
		"gzip's header":    {[]byte{0x1f, 0x8b, 8}, "EOF"},
		"checksum":         {append(slices.Clone(cut[:len(cut)-8]), 0, 0, 0, 0, 0, 0, 0, 0), "checksum"},
		"no checksum":      {cut[:len(cut)-8], "checksum at the end is cut off"},
		"half a checksum":  {cut[:len(cut)-5], "checksum at the end is cut off"},
		"no length":        {cut[:len(cut)-1], "checksum at the end is cut off"},
		"more behind gzip": {append(slices.Clone(cut), "more"...), "gzip"},
	} {
		path := write(t, "bad.idx", c.b)
		s, err := data.IDX(path)
		if s != nil || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if _, err := data.IDX(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
	if _, err := data.IDX(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
}

// TestFileShrinks: a file becomes shorter while it is in use.
func TestFileShrinks(t *testing.T) {
	path := write(t, "x.idx", idx(8, []uint32{3, 2}, []uint8{1, 2, 3, 4, 5, 6}))
	s, err := data.IDX(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 15); err != nil {
		t.Fatal(err)
	}
	err = s.Read(1, room(s))
	if re, ok := errors.AsType[*data.RecordError](err); !ok || re.File != path || re.Record != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// cifarFile makes n records with labels and pixels that identify them.
func cifarFile(n, labels, first int) []byte {
	var b []byte
	for i := range n {
		for l := range labels {
			b = append(b, byte((first+i+l)%10))
		}
		for p := range 3072 {
			b = append(b, byte(first+i+p))
		}
	}
	return b
}

func TestCIFAR(t *testing.T) {
	one, two := write(t, "1.bin", cifarFile(3, 1, 0)), write(t, "2.bin", cifarFile(2, 1, 3))
	s, err := data.CIFAR10(one, two)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Len(), s.Fields()); got != "5 [image uint8[3 32 32] label int32[]]" {
		t.Error(got)
	}
	for i := range 5 {
		dst := room(s)
		if err := s.Read(i, dst); err != nil {
			t.Fatal(err)
		}
		if x := dst[0].([]uint8); x[0] != byte(i) || x[3071] != byte(i+3071) || dst[1].([]int32)[0] != int32(i) {
			t.Errorf("record %d: %d … %d, %v", i, x[0], x[3071], dst[1])
		}
	}
	h, err := data.CIFAR100(write(t, "train.bin", cifarFile(2, 2, 7)))
	if err != nil {
		t.Fatal(err)
	}
	dst := room(h)
	if err := h.Read(1, dst); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(h.Len(), h.Fields(), dst[1:]); got != "2 [image uint8[3 32 32] label int32[] group int32[]] [[9] [8]]" {
		t.Error(got)
	}

	wrong := cifarFile(3, 1, 0)
	wrong[2*3073] = 10
	path := write(t, "wrong.bin", wrong)
	s, err = data.CIFAR10(one, path)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Read(5, room(s))
	if re, ok := errors.AsType[*data.RecordError](err); !ok || re.File != path || re.Record != 2 || !errors.Is(err, data.ErrFormat) {
		t.Error(err)
	}
	for name, b := range map[string][]byte{"empty": nil, "cut": wrong[:3073+100], "another format": []byte("hello")} {
		path := write(t, name, b)
		if s, err := data.CIFAR10(one, path); s != nil || !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := data.CIFAR10(write(t, "cut.bin", wrong[:3073+100])); !strings.Contains(err.Error(), "record 1 is cut off") {
		t.Error(err)
	}
	if _, err := data.CIFAR10(); err == nil {
		t.Error("no files were opened")
	}
	if _, err := data.CIFAR10("none.bin"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	text, err := data.ReadText("testdata/shakespeare.txt")
	if err != nil {
		t.Fatal(err)
	}
	v, err := data.NewVocabulary(text)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := v.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := v.Decode(ids); back != text || err != nil {
		t.Errorf("decoded to other text, %v", err)
	}
	if same, err := data.NewVocabulary(v.String()); err != nil || same.String() != v.String() || same.Len() != v.Len() {
		t.Error("another vocabulary of the same characters", err)
	}
	v, err = data.NewVocabulary("naïve é世")
	if err != nil || v.String() != " aenvéï世" || v.Len() != 8 {
		t.Errorf("%q, %v", v, err)
	}
	if ids, err := v.Encode("世 é"); err != nil || !slices.Equal(ids, []int32{7, 0, 5}) {
		t.Error(ids, err)
	}
	for name, f := range map[string]func() error{
		"empty":        func() error { _, err := data.NewVocabulary(""); return err },
		"no UTF-8":     func() error { _, err := data.NewVocabulary("a\xff"); return err },
		"unknown":      func() error { _, err := v.Encode("xyz"); return err },
		"encode bytes": func() error { _, err := v.Encode("n\xff"); return err },
		"negative":     func() error { _, err := v.Decode([]int32{-1}); return err },
		"too large":    func() error { _, err := v.Decode([]int32{8}); return err },
		"file":         func() error { _, err := data.ReadText(write(t, "x", []byte("ab\xfe"))); return err },
		"no file":      func() error { _, err := data.ReadText("none"); return err },
		"length":       func() error { _, err := data.Windows(ids, 0, 1); return err },
		"stride":       func() error { _, err := data.Windows(ids, 1, 0); return err },
		"few":          func() error { _, err := data.Windows(ids[:8], 8, 1); return err },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := func() error { _, err := data.NewVocabulary("\ufffd"); return err }(); err != nil {
		t.Error("the replacement character is one:", err)
	}
}

func TestWindows(t *testing.T) {
	tokens := make([]int32, 11)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	for _, c := range []struct {
		length, stride, n int
		last              string
	}{
		{3, 1, 8, "7 8 9] [8 9 10"}, {3, 3, 3, "6 7 8] [7 8 9"}, {10, 1, 1, "0 1 2 3 4 5 6 7 8 9] [1 2 3 4 5 6 7 8 9 10"}, {5, 5, 2, "5 6 7 8 9] [6 7 8 9 10"}, {1, 100, 1, "0] [1"},
	} {
		s, err := data.Windows(tokens, c.length, c.stride)
		if err != nil {
			t.Fatal(err)
		}
		if got := record(t, s, s.Len()-1); s.Len() != c.n || got != c.last {
			t.Errorf("%+v: %d windows, the last one %s", c, s.Len(), got)
		}
	}
}
