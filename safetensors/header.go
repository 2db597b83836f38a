package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/millrace-go/millrace"
)

// ErrFormat says that a file is damaged, truncated, or not in this format.
var ErrFormat = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrFormat, fmt.Errorf(format, args...))
}

// Info is the header's entry of a tensor.
type Info struct {
	Name   string
	DType  millrace.DType // Invalid if tensors have no such dtype
	Stored string         // the dtype's name in the file, such as "BF16"
	Shape  []int

	begin, end int64 // range in the bytes after the header
}

// Bytes is the size of the elements in the file.
func (i Info) Bytes() int64 { return i.end - i.begin }

const (
	metadataKey = "__metadata__"
	maxDims     = 64 // more than any framework has
	maxDepth    = 16 // of values that skip passes over
)

// header is the part of a file before the elements.
type header struct {
	tensors  []Info // in the order of their elements
	metadata map[string]string
}

// parseHeader parses the header of a file with size bytes of elements.
func parseHeader(text []byte, size int64) (*header, error) {
	if len(text) == 0 || text[0] != '{' {
		return nil, malformed("the header does not begin with {")
	}
	r := &reader{json.NewDecoder(bytes.NewReader(text))}
	r.d.UseNumber()
	h := new(header)
	err := r.object(func(key string) (err error) {
		if key == metadataKey {
			h.metadata, err = r.metadata()
			return err
		}
		t, err := r.tensor()
		t.Name = key
		h.tensors = append(h.tensors, t)
		return err
	})
	if err != nil {
		return nil, malformed("header: %w", err)
	}
	if rest := bytes.TrimLeft(text[r.d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, malformed("header: more than spaces after its end")
	}
	return h, h.check(size)
}

// check verifies that each tensor's size matches its shape, and that the tensors fill the bytes
// from the first to the last without gaps.
func (h *header) check(size int64) error {
	slices.SortStableFunc(h.tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var at int64
	for _, t := range h.tensors {
		if t.begin != at || t.end < at || t.end > size {
			return malformed("tensor %q is bytes %d to %d of %d, where byte %d is next", t.Name, t.begin, t.end, size, at)
		}
		at = t.end
		_, width := parseDType(t.Stored)
		if width == 0 {
			continue // a dtype newer than this program
		}
		want, ok := width, true
		for _, d := range t.Shape {
			if d == 0 {
				want, ok = 0, true
				break
			}
			hi, lo := bits.Mul64(uint64(want), uint64(d))
			if hi != 0 || int64(lo) < 0 {
				want, ok = 1, false // unless a later dim is 0
				continue
			}
			want = int64(lo)
		}
		if !ok || want%8 != 0 || want/8 != t.Bytes() {
			return malformed("tensor %q of dtype %s and shape %v has %d bytes", t.Name, t.Stored, t.Shape, t.Bytes())
		}
	}
	if at != size {
		return malformed("%d bytes of elements, and tensors of %d", size, at)
	}
	return nil
}

// reader reads the header's JSON token by token, and builds only the needed values.
type reader struct{ d *json.Decoder }

var errJSON = errors.New("the header is not valid JSON")

func (r *reader) token() (json.Token, error) {
	t, err := r.d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

// delim reads a bracket.
func (r *reader) delim(want json.Delim) error {
	t, err := r.token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%w: it has %v in place of %v", errJSON, t, want)
	}
	return nil
}

func (r *reader) text() (string, error) {
	t, err := r.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%w: it has %v in place of a string", errJSON, t)
	}
	return s, nil
}

// object reads {"key": value, …}; value reads the value. Duplicate keys are an error.
func (r *reader) object(value func(key string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for r.d.More() {
		key, err := r.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %q occurs twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	return r.delim('}')
}

// numbers reads [1, 2, …]: at most limit whole numbers that are not negative and fit in an int of
// width bits.
func (r *reader) numbers(limit, width int) ([]int64, error) {
	if err := r.delim('['); err != nil {
		return nil, err
	}
	var list []int64
	for r.d.More() {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%w: it has %v in place of a number", errJSON, t)
		}
		i, err := strconv.ParseUint(n.String(), 10, width-1)
		if err != nil {
			return nil, fmt.Errorf("%v is not a size", n)
		}
		if len(list) == limit {
			return nil, fmt.Errorf("there are more than %d numbers", limit)
		}
		list = append(list, int64(i))
	}
	return list, r.delim(']')
}

// metadata reads strings by name.
func (r *reader) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := r.object(func(key string) (err error) {
		m[key], err = r.text()
		return err
	})
	return m, err
}

func (r *reader) tensor() (t Info, err error) {
	var offsets, dims []int64
	var has [3]bool
	err = r.object(func(key string) (err error) {
		switch key {
		case "dtype":
			has[0] = true
			t.Stored, err = r.text()
		case "shape":
			has[1] = true
			dims, err = r.numbers(maxDims, strconv.IntSize)
		case "data_offsets":
			has[2] = true
			offsets, err = r.numbers(2, 64)
		default:
			err = r.skip()
		}
		return err
	})
	if err != nil {
		return t, err
	}
	if has != [3]bool{true, true, true} || len(offsets) != 2 {
		return t, errors.New("a tensor has dtype, shape and two data_offsets")
	}
	t.DType, _ = parseDType(t.Stored)
	t.begin, t.end = offsets[0], offsets[1]
	t.Shape = make([]int, len(dims))
	for k, d := range dims {
		t.Shape[k] = int(d)
	}
	return t, nil
}

// skip passes over a value that a later version of the format may have added.
func (r *reader) skip() error {
	for depth := 0; ; {
		t, err := r.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return errJSON
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
