package data

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/sniff"
)

// CIFAR10 opens binary files of CIFAR-10, such as data_batch_1.bin to data_batch_5.bin, as one
// source. Images are X: Uint8 of shape (3, 32, 32), red, green and blue. Labels are Y: Int32, below
// 10; a record with another label is an error when it is read. Files are read record by record and
// stay open while the source is in use; the collector closes them.
func CIFAR10(files ...string) (Source, error) {
	return openCIFAR(files, []cifarLabel{{"label", 10}}, []int{0})
}

// CIFAR100 opens binary files of CIFAR-100, train.bin or test.bin. Y is the class, below 100, and a
// third field is the class's group, below 20, both Int32. Otherwise, and in its errors, it is like
// [CIFAR10].
func CIFAR100(files ...string) (Source, error) {
	return openCIFAR(files, []cifarLabel{{"group", 20}, {"label", 100}}, []int{1, 0})
}

// cifarLabel is a byte before an image.
type cifarLabel struct {
	name    string
	classes int
}

const cifarPixels = 3 * 32 * 32

// cifar is one file.
type cifar struct {
	path   string
	data   io.ReaderAt
	n      int
	labels []cifarLabel // in the order of the file
	order  []int        // indices of labels, in the order of the fields
}

func openCIFAR(files []string, labels []cifarLabel, order []int) (Source, error) {
	if len(files) == 0 {
		return nil, errors.New("data: no files of CIFAR were given")
	}
	var parts []Source
	var opened []*os.File
	fail := func(err error) (Source, error) {
		for _, f := range opened {
			f.Close()
		}
		return nil, fmt.Errorf("data: %w", err)
	}
	for _, path := range files {
		f, err := sniff.Open(path)
		if err != nil {
			return fail(err)
		}
		opened = append(opened, f)
		info, err := f.Stat()
		if err != nil {
			return fail(err)
		}
		s, err := newCIFAR(path, f, info.Size(), labels, order)
		if err != nil {
			return fail(fmt.Errorf("%s: %w", path, err))
		}
		parts = append(parts, s)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return Concat(parts...)
}

func newCIFAR(path string, data io.ReaderAt, size int64, labels []cifarLabel, order []int) (*cifar, error) {
	record := int64(len(labels) + cifarPixels)
	if size == 0 {
		return nil, bad("the file is empty")
	}
	if size%record != 0 {
		err := bad("%w: record %d is cut off: %d of %d bytes", io.ErrUnexpectedEOF, size/record, size%record, record)
		return nil, sniff.With(err, sniff.Head(data))
	}
	if head := sniff.Head(data); len(head) > 0 && int(head[0]) >= labels[0].classes { // else it begins with a label
		if why := sniff.Explain(head); why != "" {
			return nil, bad("no file of CIFAR: %s", why)
		}
	}
	return &cifar{path, data, int(size / record), labels, order}, nil
}

func (s *cifar) Len() int { return s.n }

func (s *cifar) Fields() []Field {
	fields := []Field{{"image", millrace.Uint8, []int{3, 32, 32}}}
	for _, k := range s.order {
		fields = append(fields, Field{Name: s.labels[k].name, DType: millrace.Int32})
	}
	return fields
}

func (s *cifar) Read(i int, dst []any) error {
	var head [2]byte // no format has more labels
	labels := head[:len(s.labels)]
	at := int64(i) * int64(len(labels)+cifarPixels)
	if n, err := s.data.ReadAt(labels, at); n < len(labels) {
		return &RecordError{s.path, i, short(err)}
	}
	image := dst[0].([]uint8)
	if n, err := s.data.ReadAt(image, at+int64(len(labels))); n < len(image) {
		return &RecordError{s.path, i, short(err)}
	}
	for f, k := range s.order {
		l := int(labels[k])
		if err := checkLabel(s.path, i, l, s.labels[k].classes); err != nil {
			return err
		}
		dst[1+f].([]int32)[0] = int32(l)
	}
	return nil
}
