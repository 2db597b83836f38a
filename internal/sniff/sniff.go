package sniff

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Len is the number of bytes that suffice, from the start of a file.
const Len = 512

// Explain says what a file that begins with these bytes seems to be, with advice, such as "it seems
// to be a zip archive; unpack it". It is empty if the bytes are not recognised, and if the file is
// of the reader's own kind, which means that something else is wrong with it.
func Explain(head []byte, own ...Kind) string {
	r := find(head)
	if r == nil || slices.Contains(own, r.kind) {
		return ""
	}
	if r.kind == empty {
		return "it is empty"
	}
	text := "it seems to be " + r.what
	if r.do != "" {
		text += "; " + r.do
	}
	return text
}

// NotText is [Explain] for readers of text: only for bytes that are no text.
func NotText(head []byte) string {
	if isText(head[:min(len(head), Len)]) {
		return ""
	}
	return Explain(head)
}

// NotTable is [NotText], and also explains text that is no table.
func NotTable(head []byte) string {
	if r := find(head); r != nil && (r.kind == HTML || r.kind == LFS) {
		return Explain(head)
	}
	return NotText(head)
}

func find(head []byte) *row {
	head = head[:min(len(head), Len)]
	for i := range rows {
		if rows[i].is(head) {
			return &rows[i]
		}
	}
	return nil
}

// With adds the apparent format of the file to an error, if it is recognised.
func With(err error, head []byte, own ...Kind) error {
	if why := Explain(head, own...); err != nil && why != "" {
		return fmt.Errorf("%w; %s", err, why)
	}
	return err
}

// Head is the first bytes of r, at most as many as [Explain] needs.
func Head(r io.ReaderAt) []byte {
	b := make([]byte, Len)
	n, _ := r.ReadAt(b, 0) // unreadable bytes are not recognised
	return b[:n]
}

var errFolder = errors.New("is a folder, not a file")

// Open is os.Open for a regular file: a folder, which os.Open also opens, is an error.
func Open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: errFolder}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile is os.ReadFile with the errors of [Open].
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && int64(int(info.Size())) == info.Size() {
		b.Grow(int(info.Size()) + bytes.MinRead)
	}
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}
