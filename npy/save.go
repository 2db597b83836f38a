package npy

import (
	"errors"
	"io"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/tensorfile"
)

// Save computes t and writes it to the .npy file at path, row-major and little-endian. A dtype that
// NumPy does not have is [millrace.ErrDType]. Save returns the error that t carries or that
// computing it finds. After any error, an old file is unchanged.
func Save(path string, t *millrace.Tensor) error {
	if err := check(t); err != nil {
		return named(path, err)
	}
	return named(path, tensorfile.Save(path, func(w io.Writer) error { return write(w, t) }))
}

// Write is [Save] to w. After an error from w, part of a file may be written; after any other
// error, nothing.
func Write(w io.Writer, t *millrace.Tensor) error {
	if w == nil {
		return errors.New("npy: the writer is nil")
	}
	if err := check(t); err != nil {
		return named("", err)
	}
	return named("", write(w, t))
}

// check computes t before the file is begun, so an error of t writes nothing.
func check(t *millrace.Tensor) error {
	if err := t.Eval(); err != nil {
		return err
	}
	_, err := describe(t.DType())
	return err
}

func write(w io.Writer, t *millrace.Tensor) error {
	descr, err := describe(t.DType())
	if err != nil {
		return err
	}
	if _, err := w.Write(appendHeader(nil, descr, t.Shape())); err != nil {
		return err
	}
	_, err = t.WriteTo(w)
	return err
}
