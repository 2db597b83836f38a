package npy_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/npy"
)

// A file that is larger than memory is written and read some rows at a time.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "rows.npy")
	w, err := npy.Create(path, millrace.Float32, 3) // rows of three numbers
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Discard()
	for i := range 4 {
		if err := w.Append(millrace.Full(millrace.Float32, float64(i), 2, 3)); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	f, err := npy.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for i := 0; i < f.Len(); i += 5 {
		rows, err := f.Rows(i, min(5, f.Len()-i))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(rows.Shape(), rows.Sum())
	}
	// Output:
	// [5 3] 12.0
	// [3 3] 24.0
}
