package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/ir"
)

// ErrFormat is a file that is not what it should be: no .npy file or .npz
// archive, a damaged one, or one that is cut off.
var ErrFormat = errors.New("malformed")

// Info is what a file says of an array before its elements.
type Info struct {
	DType        millrace.DType
	Shape        []int
	FortranOrder bool // the first index moves fastest in the file
	BigEndian    bool // the high byte comes first in the file
}

// Bytes is the size of the elements.
func (i Info) Bytes() int64 { return int64(ir.Shape(i.Shape).Elems()) * int64(i.DType.Size()) }

const magic = "\x93NUMPY"

// maxHeader is the longest header that is read. NumPy's own limit is 10,000
// bytes; what is not a record needs a few hundred.
const maxHeader = 1 << 16

// readHeader reads up to the first element and no further.
func readHeader(r io.Reader) (Info, error) {
	start := make([]byte, len(magic)+2)
	if err := readFull(r, start); err != nil {
		return Info{}, err
	}
	if string(start[:len(magic)]) != magic {
		return Info{}, fmt.Errorf("%w: no .npy file starts with %q", ErrFormat, start[:len(magic)])
	}
	major, minor := start[len(magic)], start[len(magic)+1]
	var length [4]byte
	switch major {
	case 1:
		if err := readFull(r, length[:2]); err != nil {
			return Info{}, err
		}
	case 2, 3:
		if err := readFull(r, length[:]); err != nil {
			return Info{}, err
		}
	default:
		return Info{}, fmt.Errorf("%w: version %d.%d of the format is unknown", ErrFormat, major, minor)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxHeader {
		return Info{}, fmt.Errorf("%w: a header of %d bytes", ErrFormat, n)
	}
	text := make([]byte, n)
	if err := readFull(r, text); err != nil {
		return Info{}, err
	}
	return parseHeader(string(text))
}

// readFull is io.ReadFull for what must be there.
func readFull(r io.Reader, b []byte) error {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w in the header, after %d of %d bytes", ErrFormat, io.ErrUnexpectedEOF, n, len(b))
	}
	return err
}

func parseHeader(text string) (info Info, err error) {
	p := parser{text: text}
	m, err := p.dict()
	if err != nil {
		return info, fmt.Errorf("%w header: %w", ErrFormat, err)
	}
	if p.space(); p.text != "" {
		return info, fmt.Errorf("%w header: %q after its end", ErrFormat, p.text)
	}
	descr, ok1 := m["descr"]
	fortran, ok2 := m["fortran_order"].(bool)
	dims, ok3 := m["shape"].(tuple)
	if !ok1 || !ok2 || !ok3 || len(m) != 3 {
		return info, fmt.Errorf("%w header: want descr, fortran_order and shape", ErrFormat)
	}
	if info.DType, info.BigEndian, err = parseDType(descr); err != nil {
		return info, err
	}
	info.Shape = make([]int, len(dims))
	for k, d := range dims {
		n, ok := d.(int)
		if !ok {
			return info, fmt.Errorf("%w header: dimension %v is no whole number", ErrFormat, d)
		}
		if n < 0 {
			return info, fmt.Errorf("%w header: dimension %d is negative", ErrFormat, n)
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

// reversed is a copy with the last first.
func reversed(s []int) []int {
	r := slices.Clone(s)
	slices.Reverse(r)
	return r
}
