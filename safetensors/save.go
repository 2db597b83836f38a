package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/tensorfile"
)

// Save computes the tensors and writes them with the metadata, if any, to the file at path. An
// error leaves an old file unchanged. Errors are those of a tensor; a name, key or value that is
// not UTF-8; and a tensor named __metadata__.
func Save(path string, tensors map[string]*millrace.Tensor, metadata map[string]string) error {
	p, err := prepare(tensors, metadata)
	if err != nil {
		return named(path, err)
	}
	return named(path, tensorfile.Save(path, p.write))
}

// Write is [Save] to w. After an error of w a part of the file may be written; after any other
// error nothing is.
func Write(w io.Writer, tensors map[string]*millrace.Tensor, metadata map[string]string) error {
	if w == nil {
		return errors.New("safetensors: the writer is nil")
	}
	p, err := prepare(tensors, metadata)
	if err != nil {
		return named("", err)
	}
	return named("", p.write(w))
}

// prepared is a file whose tensors are computed and in order.
type prepared struct {
	header []byte
	items  []item
}

type item struct {
	name, stored string
	place        int
	t            *millrace.Tensor
}

func prepare(tensors map[string]*millrace.Tensor, metadata map[string]string) (*prepared, error) {
	p := new(prepared)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		t := tensors[name]
		if name == metadataKey {
			return nil, fmt.Errorf("%q is the format's own name", name)
		}
		if err := t.Eval(); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		stored, place, err := describe(t.DType())
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		p.items = append(p.items, item{name, stored, place, t})
	}
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(a.place, b.place) })
	text, err := headerOf(p.items, metadata)
	if err != nil {
		return nil, err
	}
	p.header = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return p, nil
}

// headerOf makes the JSON of a header, padded with spaces to a multiple of 8 bytes.
func headerOf(items []item, metadata map[string]string) (b []byte, err error) {
	valid := true
	text := func(s string) {
		valid = valid && utf8.ValidString(s)
		b = appendString(b, s)
	}
	comma := func() {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
	}
	b = append(b, '{')
	if len(metadata) > 0 {
		text(metadataKey)
		b = append(b, ":{"...)
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			comma()
			text(key)
			b = append(b, ':')
			text(metadata[key])
		}
		b = append(b, '}')
	}
	var at int64
	for _, it := range items {
		comma()
		text(it.name)
		b = append(b, `:{"dtype":"`+it.stored+`","shape":[`...)
		for k, d := range it.t.Shape() {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(d), 10)
		}
		b = append(b, `],"data_offsets":[`...)
		b = strconv.AppendInt(b, at, 10)
		at += int64(it.t.Len()) * int64(it.t.DType().Size())
		b = append(b, ',')
		b = strconv.AppendInt(b, at, 10)
		b = append(b, "]}"...)
	}
	b = append(b, '}')
	for len(b)%lengthBytes != 0 {
		b = append(b, ' ')
	}
	if !valid {
		return nil, errors.New("names, keys and values must be UTF-8")
	}
	if len(b) > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes; the format's limit is %d", len(b), maxHeader)
	}
	return b, nil
}

// appendString writes a JSON string with as few escapes as possible. (The standard library's
// encoder escapes more, and the bytes would differ from those of the Python package.)
func appendString(b []byte, s string) []byte {
	short := map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case short[c] != 0:
			b = append(b, '\\', short[c])
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func (p *prepared) write(w io.Writer) error {
	if _, err := w.Write(p.header); err != nil {
		return err
	}
	for _, it := range p.items {
		if _, err := it.t.WriteTo(w); err != nil {
			return fmt.Errorf("%q: %w", it.name, err)
		}
	}
	return nil
}
