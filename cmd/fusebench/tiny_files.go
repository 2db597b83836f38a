package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace"
)

// writeOver opens a file, overwrites it from its beginning, and closes it. All files of seven
// values have the same size, so nothing of the old file remains. Truncating the file first would
// take file systems a hundred times as long.
func writeOver(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// readWhole opens a file, reads len(data) bytes, and closes it.
func readWhole(path string, data []byte) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(f, data)
	return errors.Join(err, f.Close())
}

// tinyValues are the values of the graph tiny, from a to g.
func tinyValues(a, b *millrace.Tensor) []*millrace.Tensor {
	c := a.Add(b)
	d := a.Mul(b).Add(b.PowInt(3))
	e := c.Sub(d)
	f := e.Square()
	return []*millrace.Tensor{a, b, c, d, e, f, f.DivScalar(2)}
}

// fileRuns save or load seven values as raw bytes, one file each time. They save from tensors,
// load into new tensors or into the arguments of a bound recording, and do the same in plain Go.
func fileRuns(dev *millrace.Device, variant string) (runs []*scalarRun, done func(), err error) {
	dir, err := os.MkdirTemp("", "fusebench-tiny")
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			done()
		}
	}()
	ts := tinyValues(millrace.ScalarOn(dev, -41.0), millrace.ScalarOn(dev, 2.0))
	var vs []float64
	for _, t := range ts {
		v, err := millrace.Item[float64](t)
		if err != nil {
			return nil, nil, err
		}
		vs = append(vs, v)
	}
	theirs, ours := filepath.Join(dir, "go"), filepath.Join(dir, "tensors")
	base := &scalarRun{row: Row{Mode: plain}}
	r := &scalarRun{dev: dev, row: Row{Mode: eager}}
	data := make([]byte, 8*len(vs))
	var buf bytes.Buffer
	var in bytes.Reader
	save := func() error {
		buf.Reset()
		for _, t := range ts {
			if _, err := t.WriteTo(&buf); err != nil {
				return err
			}
		}
		return writeOver(ours, buf.Bytes())
	}
	plainSave := func() error {
		for i, v := range vs {
			binary.LittleEndian.PutUint64(data[8*i:], math.Float64bits(v))
		}
		return writeOver(theirs, data)
	}
	if err := save(); err != nil {
		return nil, nil, err
	}
	if err := plainSave(); err != nil {
		return nil, nil, err
	}
	if variant == "save" {
		r.once, base.once = save, plainSave
		return []*scalarRun{base, r}, done, nil
	}
	got := make([]float64, len(vs))
	base.once = func() error {
		if err := readWhole(theirs, data); err != nil {
			return err
		}
		for i := range got {
			got[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return nil
	}
	sum := millrace.NewRecording(func(_ *millrace.Scope, in []*millrace.Tensor) ([]*millrace.Tensor, error) {
		y := in[0]
		for _, x := range in[1:] {
			y = y.Add(x)
		}
		return []*millrace.Tensor{y}, nil
	})
	b, err := sum.BindWith(millrace.BindOptions{On: dev.NewStream()}, ts...)
	if err != nil {
		return nil, nil, err
	}
	into := &scalarRun{dev: dev, row: Row{Mode: bound}, once: func() error {
		if err := readWhole(ours, data); err != nil {
			return err
		}
		for i := range ts {
			if err := millrace.SetInput(b, i, math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))); err != nil {
				return err
			}
		}
		return nil
	}}
	r.once = func() error {
		if err := readWhole(ours, data); err != nil {
			return err
		}
		in.Reset(data)
		for range ts {
			t, err := millrace.FromReaderOn(dev, &in, millrace.Float64)
			if err != nil {
				return err
			}
			t.Release()
		}
		return nil
	}
	x, err := os.ReadFile(ours)
	if err == nil && !bytes.Equal(x, data) {
		err = fmt.Errorf("tensors wrote %x, plain Go %x", x, data)
	}
	return []*scalarRun{base, r, into}, func() { _, _ = b.Close(), os.RemoveAll(dir) }, err
}
