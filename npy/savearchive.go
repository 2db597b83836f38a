package npy

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/tensorfile"
)

// SaveArchive computes the tensors and writes them to the .npz archive at path, uncompressed and
// sorted by name. Errors are those of [Save]. A name that is not UTF-8, or has a zero byte, is an
// error too.
func SaveArchive(path string, tensors map[string]*millrace.Tensor) error {
	return save(path, tensors, zip.Store)
}

// SaveCompressed is [SaveArchive] with each array compressed by deflate, and has its errors. The
// same tensors give the same bytes with the same version of Go.
func SaveCompressed(path string, tensors map[string]*millrace.Tensor) error {
	return save(path, tensors, zip.Deflate)
}

func save(path string, tensors map[string]*millrace.Tensor, method uint16) error {
	if err := checkAll(tensors); err != nil {
		return named(path, err)
	}
	return named(path, tensorfile.Save(path, func(w io.Writer) error { return writeAll(w, tensors, method) }))
}

// WriteArchive is [SaveArchive] to w. After an error from w, part of an archive may be written;
// after any other error, nothing.
func WriteArchive(w io.Writer, tensors map[string]*millrace.Tensor) error {
	if w == nil {
		return errors.New("npy: the writer is nil")
	}
	if err := checkAll(tensors); err != nil {
		return named("", err)
	}
	return named("", writeAll(w, tensors, zip.Store))
}

func checkAll(tensors map[string]*millrace.Tensor) error {
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		if !utf8.ValidString(name) || strings.Contains(name, "\x00") {
			return fmt.Errorf("%q cannot be a name in an archive", name)
		}
		if err := check(tensors[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return nil
}

// noTime is the date of every file: the first that an archive can express, as NumPy writes it.
var noTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func writeAll(w io.Writer, tensors map[string]*millrace.Tensor, method uint16) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + extension, Method: method, Modified: noTime})
		if err != nil {
			return err
		}
		if err := write(f, tensors[name]); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return z.Close()
}
