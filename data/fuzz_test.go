package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/millrace-go/millrace/internal/testing/filetest"
)

// readAll reads every record of a source whose file passed the checks at opening. Only labels may
// still be wrong.
func readAll(t *testing.T, s Source, name string) {
	if err := checkFields(s.Fields(), s.Len()); err != nil {
		t.Fatal(err)
	}
	dst := room(s.Fields())
	for i := range min(s.Len(), 100) {
		i := s.Len() - 1 - i
		err := s.Read(i, dst)
		re, ok := errors.AsType[*RecordError](err)
		if err != nil && (!ok || re.Record != i || re.File != name || !errors.Is(err, ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF)) {
			t.Fatal(err)
		}
	}
}

// modest fails if reading b takes more memory than its bytes justify. Compression may shrink data
// to a thousandth.
func modest(t *testing.T, b []byte, factor int, f func()) {
	const fixed = 1 << 20
	if took := filetest.Allocated(f); took > uint64(fixed+factor*len(b)) {
		t.Fatalf("%d bytes were taken for %d", took, len(b))
	}
}

func FuzzIDX(f *testing.F) {
	good := []byte{0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6}
	f.Add(good)
	f.Add(good[:15])
	f.Add([]byte{0, 0, 0x0E, 1, 0xff, 0xff, 0xff, 0xff, 1, 2})
	f.Add([]byte{0, 0, 0x0B, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 1, 2, 3, 4})
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0, 0})
	f.Add([]byte{0, 0, 8, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		const deflate = 1100 // largest expansion, including the copy of a growing slice
		modest(t, b, 8*deflate, func() {
			s, err := readIDX(bytes.NewReader(b), "x")
			if err != nil {
				if !errors.Is(err, ErrFormat) {
					t.Fatal(err)
				}
				return
			}
			if b[0] == 0 && int64(len(b)) != s.start+s.bytes() {
				t.Fatalf("%d bytes are %d records of %v", len(b), s.n, s.field)
			}
			if s.bytes() < 1<<16 {
				readAll(t, s, "x")
			}
		})
	})
}

func FuzzCIFAR(f *testing.F) {
	one := make([]byte, 1+cifarPixels)
	f.Add(one, false)
	f.Add(append(slices.Clone(one), one...), true)
	f.Add(append([]byte{10}, one[1:]...), false)
	f.Add(append([]byte{19, 100}, one[1:]...), true)
	f.Fuzz(func(t *testing.T, b []byte, hundred bool) {
		labels, order := []cifarLabel{{"label", 10}}, []int{0}
		if hundred {
			labels, order = []cifarLabel{{"group", 20}, {"label", 100}}, []int{1, 0}
		}
		modest(t, b, 1, func() {
			s, err := newCIFAR("x", bytes.NewReader(b), int64(len(b)), labels, order)
			if err != nil {
				if !errors.Is(err, ErrFormat) {
					t.Fatal(err)
				}
				return
			}
			if s.n*(len(labels)+cifarPixels) != len(b) {
				t.Fatalf("%d bytes are %d records", len(b), s.n)
			}
			readAll(t, s, "x")
		})
	})
}

func FuzzCSV(f *testing.F) {
	for k, text := range []string{"1,2,3\n4,5,6\n", "a,b\n1,2\n", "# c\n1;x\n", "\ufeff\"1\",2\n", "1,2\n3", "1,nan\n", "\"", "1,\n", "0x1p-2,1_0\n", "a,red\n?,red\n1,blue\n"} {
		f.Add([]byte(text), byte(k))
	}
	f.Fuzz(func(t *testing.T, b []byte, how byte) {
		opt := CSVOptions{Header: how&1 != 0, Comment: '#'}
		if how&2 != 0 {
			opt.Label = "-1"
		}
		if how&4 != 0 {
			opt.Classes = 3
		}
		if how&8 != 0 {
			opt.Label, opt.Target = "", "0"
		}
		if how&16 != 0 {
			opt.Comma = ';'
		}
		if how&32 != 0 {
			opt.Categories, opt.NA = []string{"1"}, []string{"?"}
		}
		opt.Missing = Missing(how >> 6)
		modest(t, b, 100, func() {
			s, err := ReadCSV(bytes.NewReader(b), "x", opt)
			if err != nil {
				return
			}
			if s.n == 0 || len(s.values) != s.n*len(s.cols) || s.labels != nil && len(s.labels) != s.n || s.target != nil && len(s.target) != s.n {
				t.Fatalf("%d records of %d columns: %d values, %d labels, %d targets", s.n, len(s.Columns), len(s.values), len(s.labels), len(s.target))
			}
			for i, l := range s.labels {
				if l < 0 || opt.Classes > 0 && int(l) >= opt.Classes || opt.Classes == 0 && int(l) >= len(s.Classes) {
					t.Fatalf("label %d of record %d", l, i)
				}
			}
			readAll(t, s, "x")
		})
	})
}

// TestBigEndian compares the decoding of big-endian numbers with the standard library.
func TestBigEndian(t *testing.T) {
	b := []byte{0x80, 1, 2, 3, 4, 5, 0x3f, 0xf0, 9, 10, 11, 12, 0xc0, 14, 15, 16}
	for k, dst := range []any{make([]int8, 16), make([]int16, 8), make([]int32, 4), make([]float32, 4), make([]float64, 2)} {
		want := []any{make([]int8, 16), make([]int16, 8), make([]int32, 4), make([]float32, 4), make([]float64, 2)}[k]
		bigEndian(dst, 0, b)
		if _, err := binary.Decode(b, binary.BigEndian, want); err != nil {
			t.Fatal(err)
		}
		got, _ := binary.Append(nil, binary.BigEndian, dst)
		if again, _ := binary.Append(nil, binary.BigEndian, want); !bytes.Equal(got, again) {
			t.Errorf("%T: %v, want %v", dst, dst, want)
		}
	}
}
