package npy_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/npy"
)

// Load reads what numpy.save wrote, Save writes what numpy.load reads.
func Example() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	x, err := npy.Load("testdata/float32_fortran.npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(x.DType(), x.Shape())

	path := filepath.Join(dir, "sums.npy")
	if err := npy.Save(path, x.Abs().Sum(1)); err != nil {
		fmt.Println(err)
		return
	}
	sums, err := npy.Load(path)
	fmt.Println(sums, err)
	// Output:
	// float32 [2 3 4]
	// [[12. 15. 18. 21.]
	//  [48. 51. 54. 57.]] <nil>
}

// A file says what it holds before it is read.
func ExampleStat() {
	info, err := npy.Stat("testdata/fortran_big.npy")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.DType, info.Shape, info.Bytes(), "bytes")
	// Output: float32 [2 3 4] 96 bytes
}

func ExampleOpenArchive() {
	a, err := npy.OpenArchive("testdata/compressed.npz") // numpy.savez_compressed
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	fmt.Println(a.Names())
	bias, err := a.Tensor("bias")
	fmt.Println(bias, err)
	// Output:
	// [weights bias steps]
	// [ 0. -1.  2.] <nil>
}

func ExampleSaveArchive() {
	file, err := os.CreateTemp("", "*.npz")
	if err != nil {
		fmt.Println(err)
		return
	}
	file.Close()
	defer os.Remove(file.Name())
	err = npy.SaveArchive(file.Name(), map[string]*millrace.Tensor{
		"x": millrace.Ones(millrace.Float32, 2, 2),
		"n": millrace.Scalar[int64](7),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	all, err := npy.LoadArchive(file.Name())
	fmt.Println(all["n"], len(all), err)
	// Output: 7 2 <nil>
}
