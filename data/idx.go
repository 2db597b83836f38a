package data

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// idxTypes maps the type byte of IDX files to dtypes.
var idxTypes = map[byte]millrace.DType{
	0x08: millrace.Uint8, 0x09: millrace.Int8, 0x0B: millrace.Int16,
	0x0C: millrace.Int32, 0x0D: millrace.Float32, 0x0E: millrace.Float64,
}

// IDX opens a file in the format of MNIST, plain or compressed by gzip: an array, whose first
// dimension numbers the records. Records have one field, of the file's dtype. A plain file is read
// record by record and stays open while the source is in use; the collector closes it. A compressed
// file is held in memory. A file that is no IDX file, or has fewer or more bytes than its header
// says, is [ErrFormat].
func IDX(path string) (Source, error) {
	s, err := openIDX(path)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// MNIST opens a file of images and a file of their labels, both as in [IDX]. Images, of any height
// and width, are X: Uint8 of shape (1, height, width). Labels are Y: Int32, below classes, which is
// 10 for MNIST itself; a record with another label is an error when it is read.
func MNIST(images, labels string, classes int) (Source, error) {
	x, err := openIDX(images)
	if err != nil {
		return nil, err
	}
	y, err := openIDX(labels)
	if err != nil {
		return nil, err
	}
	switch {
	case x.field.DType != millrace.Uint8 || len(x.field.Shape) != 2:
		return nil, fmt.Errorf("data: %s: %w", images, bad("the records are %v%v, not images", x.field.DType, x.field.Shape))
	case y.field.DType != millrace.Uint8 || len(y.field.Shape) != 0:
		return nil, fmt.Errorf("data: %s: %w", labels, bad("the records are %v%v, not labels", y.field.DType, y.field.Shape))
	case x.n != y.n:
		return nil, fmt.Errorf("data: %s and %s: %w", images, labels, bad("there are %d images and %d labels", x.n, y.n))
	}
	x.field.Name, x.field.Shape = "image", append([]int{1}, x.field.Shape...)
	label := Field{Name: "label", DType: millrace.Int32}
	checked, err := Map(y, []Field{label}, func(i int, in, out []any) error {
		l := int(in[0].([]uint8)[0])
		out[0].([]int32)[0] = int32(l)
		return checkLabel(labels, i, l, classes)
	})
	if err != nil {
		return nil, err
	}
	return Zip(x, checked)
}

// checkLabel returns an error for a label out of range.
func checkLabel(file string, record, label, classes int) error {
	if label < 0 || label >= classes {
		return &RecordError{file, record, bad("label %d is not one of %d classes", label, classes)}
	}
	return nil
}

// idx is an IDX file.
type idx struct {
	path  string
	field Field
	n     int
	data  io.ReaderAt
	start int64 // start of the elements in data
}

func openIDX(path string) (*idx, error) {
	f, err := sniff.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s, err := readIDX(f, path)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data: %s: %w", path, err)
	}
	if s.data != io.ReaderAt(f) {
		f.Close()
	}
	return s, nil
}

// readIDX reads a file's header and checks that the file has as many bytes as the header says.
func readIDX(f interface {
	io.ReadSeeker
	io.ReaderAt
}, path string) (*idx, error) {
	var magic [2]byte
	if n, err := f.ReadAt(magic[:], 0); n < len(magic) {
		return nil, sniff.With(short(err), magic[:n], sniff.IDX)
	}
	if magic != [2]byte{0x1f, 0x8b} {
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		s, err := idxHeader(f, path, sniff.Head(f))
		if err != nil {
			return nil, err
		}
		s.data = f
		return s, s.whole(size - s.start)
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, broken(err)
	}
	elems := bufio.NewReader(z)
	head, _ := elems.Peek(sniff.Len) // read errors are found below
	s, err := idxHeader(elems, path, head)
	if err != nil && !errors.Is(err, ErrFormat) {
		return nil, broken(err)
	}
	if err != nil {
		return nil, fmt.Errorf("the data unpacked by gzip: %w", err)
	}
	// The buffer grows as elements arrive, and stops at the size in the header. Neither a header
	// nor compression can therefore demand more memory than there is data.
	b := &bytesAt{}
	b.b, err = io.ReadAll(io.LimitReader(elems, s.bytes()+1))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, broken(err)
	}
	s.data, s.start = b, 0
	if fault := s.whole(int64(len(b.b))); fault != nil {
		return nil, fault
	}
	if err != nil { // all elements are there, but the checksum after them is not
		return nil, bad("gzip: the checksum at the end is cut off: %w", err)
	}
	return s, nil
}

// bytesAt is a file in memory.
type bytesAt struct{ b []byte }

func (r *bytesAt) ReadAt(p []byte, at int64) (int, error) {
	if at > int64(len(r.b)) {
		return 0, io.EOF
	}
	n := copy(p, r.b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// short converts the error of a file that ends too early; it leaves other errors unchanged.
func short(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("%w", io.ErrUnexpectedEOF)
	}
	return err
}

// idxHeader reads the header, up to the first element.
func idxHeader(r io.Reader, path string, start []byte) (*idx, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, sniff.With(short(err), start, sniff.IDX)
	}
	dt, ok := idxTypes[head[2]]
	rank := int(head[3])
	switch {
	case (head[0] != 0 || head[1] != 0 || !ok) && sniff.Explain(start, sniff.IDX) != "":
		return nil, bad("no IDX file: %s", sniff.Explain(start, sniff.IDX))
	case head[0] != 0 || head[1] != 0:
		return nil, bad("it starts with %#x, as no IDX file does", head[:])
	case !ok:
		return nil, bad("the elements have the unknown kind %#x", head[2])
	case rank < 1 || rank > maxRank+1:
		return nil, bad("the array has %d dimensions", rank)
	}
	s := &idx{path: path, start: int64(len(head) + 4*rank)}
	dims := make([]byte, 4*rank)
	if _, err := io.ReadFull(r, dims); err != nil {
		return nil, short(err)
	}
	total := int64(dt.Size())
	for k := range rank {
		d := int64(binary.BigEndian.Uint32(dims[4*k:]))
		if d == 0 {
			return nil, bad("dimension %d has no elements", k)
		}
		if total > (math.MaxInt-math.MaxInt16)/d {
			return nil, bad("more elements than can be addressed")
		}
		total *= d
		if k == 0 {
			s.n = int(d)
		} else {
			s.field.Shape = append(s.field.Shape, int(d))
		}
	}
	s.field.Name, s.field.DType = "x", dt
	return s, nil
}

// bytes is the size of all elements.
func (s *idx) bytes() int64 { return int64(s.n) * s.recordSize() }

func (s *idx) recordSize() int64 { return int64(s.field.elems() * s.field.DType.Size()) }

// whole returns an error unless got is the number of bytes in the header.
func (s *idx) whole(got int64) error {
	switch want := s.bytes(); {
	case got < want:
		return bad("%w: the header promises %d records, and record %d is cut off", io.ErrUnexpectedEOF, s.n, got/s.recordSize())
	case got > want:
		return bad("there are bytes after the last of %d records", s.n)
	}
	return nil
}

func (s *idx) Len() int        { return s.n }
func (s *idx) Fields() []Field { return []Field{s.field} }

func (s *idx) Read(i int, dst []any) error {
	at := s.start + int64(i)*s.recordSize()
	if b, ok := dst[0].([]uint8); ok {
		return s.read(i, b, at)
	}
	var part [4096]byte
	size := s.field.DType.Size()
	for from, n := 0, s.field.elems(); from < n; {
		k := min(n-from, len(part)/size)
		if err := s.read(i, part[:k*size], at+int64(from*size)); err != nil {
			return err
		}
		bigEndian(dst[0], from, part[:k*size])
		from += k
	}
	return nil
}

// read reports a file that has changed since it was opened, and errors of the disk.
func (s *idx) read(i int, b []byte, at int64) error {
	if n, err := s.data.ReadAt(b, at); n < len(b) {
		return &RecordError{s.path, i, short(err)}
	}
	return nil
}

// bigEndian decodes elements into dst from index from on.
func bigEndian(dst any, from int, b []byte) {
	switch dst := dst.(type) {
	case []int8:
		for k, e := range b {
			dst[from+k] = int8(e)
		}
	case []int16:
		for k := range len(b) / 2 {
			dst[from+k] = int16(binary.BigEndian.Uint16(b[2*k:]))
		}
	case []int32:
		for k := range len(b) / 4 {
			dst[from+k] = int32(binary.BigEndian.Uint32(b[4*k:]))
		}
	case []float32:
		for k := range len(b) / 4 {
			dst[from+k] = math.Float32frombits(binary.BigEndian.Uint32(b[4*k:]))
		}
	case []float64:
		for k := range len(b) / 8 {
			dst[from+k] = math.Float64frombits(binary.BigEndian.Uint64(b[8*k:]))
		}
	}
}
