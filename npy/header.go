package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
	"github.com/millrace-go/millrace/internal/tensorfile"
	"github.com/millrace-go/millrace/ir"
)

// ErrFormat says that a file is damaged, cut off, or no .npy file or .npz archive.
var ErrFormat = errors.New("malformed")

// Info is the header of an array.
type Info struct {
	DType        millrace.DType
	Shape        []int
	FortranOrder bool // the first index moves fastest in the file
	BigEndian    bool // the high byte comes first in the file
	// Offset is where the elements begin, in bytes from the start of the .npy file; in an archive
	// from the start of the array's file, unpacked.
	Offset int64
}

// Bytes is the size of the elements.
func (i Info) Bytes() int64 { return int64(ir.Shape(i.Shape).Elems()) * int64(i.DType.Size()) }

const magic = "\x93NUMPY"

// maxHeader is the longest header that is read. NumPy's own limit is 10,000 bytes; a header without
// records needs a few hundred.
const maxHeader = 1 << 16

// readHeader reads up to the first element and no further.
func readHeader(r io.Reader) (Info, error) {
	start := make([]byte, len(magic)+2)
	if n, err := io.ReadFull(r, start); err != nil {
		return Info{}, sniff.With(endOf(err, n, len(start)), start[:n], sniff.Npy)
	}
	if string(start[:len(magic)]) != magic {
		return Info{}, otherFile(r, start)
	}
	major, minor := start[len(magic)], start[len(magic)+1]
	var length [4]byte
	width := len(length)
	switch major {
	case 1:
		width = 2
	case 2, 3:
	default:
		return Info{}, fmt.Errorf("%w: version %d.%d of the format is unknown", ErrFormat, major, minor)
	}
	if err := readFull(r, length[:width]); err != nil {
		return Info{}, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return Info{}, fmt.Errorf("%w: the header has %d bytes", ErrFormat, n)
	}
	text := make([]byte, n)
	if err := readFull(r, text); err != nil {
		return Info{}, err
	}
	info, err := parseHeader(string(text))
	info.Offset = int64(len(start)) + int64(width) + int64(n)
	return info, err
}

// otherFile says which other format a file seems to have; start is its beginning, and r has the
// rest.
func otherFile(r io.Reader, start []byte) error {
	head := start
	if tensorfile.Left(r) > 0 { // reading cannot block: the bytes are there
		more := make([]byte, sniff.Len-len(start))
		n, _ := io.ReadFull(r, more)
		head = append(slices.Clone(start), more[:n]...)
	}
	if why := sniff.Explain(head); why != "" {
		return fmt.Errorf("%w: no .npy file: %s", ErrFormat, why)
	}
	return fmt.Errorf("%w: it starts with %q, as no .npy file does", ErrFormat, start[:len(magic)])
}

// readFull is io.ReadFull for bytes that a valid file has.
func readFull(r io.Reader, b []byte) error {
	n, err := io.ReadFull(r, b)
	return endOf(err, n, len(b))
}

// endOf turns the end of the file after n bytes of a part of the header into [ErrFormat]. It
// returns other errors unchanged.
func endOf(err error, n, part int) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w: the header ends after %d of %d bytes", ErrFormat, io.ErrUnexpectedEOF, n, part)
	}
	return err
}

// headerKeys are the keys of every header. Other keys are an error.
var headerKeys = []string{"descr", "fortran_order", "shape"}

func parseHeader(text string) (info Info, err error) {
	p := parser{text: text}
	m, err := p.dict()
	if err != nil {
		return info, fmt.Errorf("%w header: %w", ErrFormat, err)
	}
	if p.space(); p.text != "" {
		return info, fmt.Errorf("%w: the header is followed by %q", ErrFormat, p.text)
	}
	for _, key := range headerKeys {
		if _, ok := m[key]; !ok {
			return info, fmt.Errorf("%w header: it has no %s", ErrFormat, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(headerKeys, key) {
			return info, fmt.Errorf("%w header: the key %q is not one of %s", ErrFormat, key, strings.Join(headerKeys, ", "))
		}
	}
	fortran, ok := m["fortran_order"].(bool)
	if !ok {
		return info, fmt.Errorf("%w header: fortran_order is %s, neither True nor False", ErrFormat, python(m["fortran_order"]))
	}
	dims, ok := m["shape"].(tuple)
	if n, isInt := m["shape"].(int); isInt {
		return info, fmt.Errorf("%w header: the shape is the number %d, not a tuple: write one dimension as (%[2]d,)", ErrFormat, n)
	}
	if !ok {
		return info, fmt.Errorf("%w header: the shape is %s, not a tuple", ErrFormat, python(m["shape"]))
	}
	if info.DType, info.BigEndian, err = parseDType(m["descr"]); err != nil {
		return info, err
	}
	info.Shape = make([]int, len(dims))
	for k, d := range dims {
		n, ok := d.(int)
		if !ok {
			return info, fmt.Errorf("%w header: dimension %d of the shape is %s, not a whole number", ErrFormat, k, python(d))
		}
		if n < 0 {
			return info, fmt.Errorf("%w header: dimension %d of the shape is %d, which is negative", ErrFormat, k, n)
		}
		info.Shape[k] = n
	}
	if err := ir.Shape(info.Shape).Check(); err != nil {
		return info, fmt.Errorf("%w: %w", millrace.ErrShape, err)
	}
	info.FortranOrder = fortran && len(dims) > 1 // below, there is but one order
	return info, nil
}

// appendHeader writes what NumPy 2 does: version 1.0, a dictionary with sorted
// keys, room for the outermost dimension to grow to 21 digits, and spaces up to
// a multiple of 64 bytes.
func appendHeader(b []byte, descr string, shape []int) []byte {
	const growth, align, fixed = 21, 64, len(magic) + 4
	var dims strings.Builder
	for _, d := range shape {
		dims.WriteString(strconv.Itoa(d) + ", ")
	}
	tuple := strings.TrimSuffix(dims.String(), " ")
	if len(shape) != 1 {
		tuple = strings.TrimSuffix(tuple, ",")
	}
	text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + tuple + "), }"
	if len(shape) > 0 {
		text += strings.Repeat(" ", growth-len(strconv.Itoa(shape[0])))
	}
	text += strings.Repeat(" ", align-(fixed+len(text)+1)%align) + "\n"
	b = append(b, magic+"\x01\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// reversed returns a copy in reverse order.
func reversed(s []int) []int {
	r := slices.Clone(s)
	slices.Reverse(r)
	return r
}
