// Larger brings the columns of an .npy file that is larger than memory to mean 0 and standard
// deviation 1: it reads the file twice, a part at a time, and writes another one.
//
//	go run ./examples/larger -o scaled.npy large.npy
//
// Without a file it makes one of -rows rows of 64 random numbers, beside the one that it writes.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/npy"
)

func main() {
	out := flag.String("o", "out/scaled.npy", "file to write; its folder is made if need be")
	rows := flag.Int("rows", 100_000, "rows of the file that is made where none is given")
	part := flag.Int("part", 32_768, "rows that are in memory at a time")
	flag.Parse()
	if err := run(flag.Arg(0), *out, *rows, *part); err != nil {
		log.Fatal(err)
	}
}

func run(in, out string, rows, part int) error {
	if part < 1 || rows < 1 {
		return fmt.Errorf("%d rows in parts of %d: both are at least 1", rows, part)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return err
	}
	if in == "" {
		in = filepath.Join(filepath.Dir(out), "large.npy")
		if err := made(in, rows, part); err != nil {
			return err
		}
		fmt.Println("wrote", in)
	}
	f, err := npy.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	if info := f.Info(); len(info.Shape) != 2 || !info.DType.IsFloat() || f.Len() < 1 {
		return fmt.Errorf("%s: %v%v is not a table of floats", in, info.DType, info.Shape)
	}
	mean, scale, err := moments(f, part)
	if err != nil {
		return err
	}
	w, err := npy.Create(out, f.Info().DType, f.Info().Shape[1])
	if err != nil {
		return err
	}
	defer w.Discard()
	err = parts(f, part, func(x *millrace.Tensor) error {
		return w.Append(x.Sub(mean).Mul(scale))
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Println("wrote", out)
	return nil
}

// parts passes a file's rows to use, a part at a time. Tensors that use makes from a part are
// released with it.
func parts(f *npy.File, part int, use func(x *millrace.Tensor) error) error {
	d, err := millrace.Default()
	if err != nil {
		return err
	}
	for i := 0; i < f.Len(); i += part {
		err := d.Scope(func(sc *millrace.Scope) error {
			x, err := f.RowsOn(sc, i, min(part, f.Len()-i))
			if err != nil {
				return err
			}
			return use(x)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// moments are the means of a file's columns, and the reciprocals of their standard
// deviations. Sums are of differences from the first row, in float64, so that columns far
// from 0 lose no digits.
func moments(f *npy.File, part int) (mean, scale *millrace.Tensor, err error) {
	dt, n := f.Info().DType, float64(f.Len())
	first, err := f.Rows(0, 1)
	if err != nil {
		return nil, nil, err
	}
	from := first.Cast(millrace.Float64)
	columns := f.Info().Shape[1]
	sums, squares := make([]float64, columns), make([]float64, columns)
	err = parts(f, part, func(x *millrace.Tensor) error {
		d := x.Cast(millrace.Float64).Sub(from)
		both, err := millrace.Values[float64](millrace.Concat(0, d.Sum(0), d.Square().Sum(0)))
		if err != nil {
			return err
		}
		for k := range columns {
			sums[k] += both[k]
			squares[k] += both[columns+k]
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	s, q := millrace.FromSlice(sums).DivScalar(n), millrace.FromSlice(squares).DivScalar(n)
	deviation := q.Sub(s.Square()).Sqrt().MaximumScalar(1e-12) // of a constant column: it becomes 0
	return from.Add(s).Cast(dt), deviation.Recip().Cast(dt), nil
}

// made writes a file of random numbers, of which column k has mean k and deviation k+1.
func made(path string, rows, part int) error {
	const columns = 64
	w, err := npy.Create(path, millrace.Float32, columns)
	if err != nil {
		return err
	}
	defer w.Discard()
	means := millrace.Arange(millrace.Float32, 0, columns, 1)
	for i := 0; i < rows; i += part {
		x := millrace.Normal(millrace.Float32, uint64(i), min(part, rows-i), columns)
		y := x.Mul(means.AddScalar(1)).Add(means)
		if err := w.Append(y); err != nil {
			return err
		}
		x.Release()
		y.Release()
	}
	return w.Close()
}
