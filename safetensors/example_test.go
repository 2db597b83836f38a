package safetensors_test

import (
	"fmt"
	"os"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/safetensors"
)

// Open reads no elements: listing a model is cheap, and only the requested tensors are read.
func ExampleOpen() {
	f, err := safetensors.Open("testdata/first.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for _, name := range f.Names() {
		info, err := f.Info(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name, info.Stored, info.Shape, info.Bytes())
	}
	x, err := f.Tensor("float32")
	fmt.Println(x, err)
	// Output:
	// int64 I64 [2 3] 48
	// float64 F64 [2 3] 48
	// float32 F32 [2 3] 24
	// int32 I32 [2 3] 24
	// uint8 U8 [2 3] 6
	// bool BOOL [2 3] 6
	// [[ 0. -1.  2.]
	//  [-3.  4. -5.]] <nil>
}

func ExampleSave() {
	file, err := os.CreateTemp("", "*.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	file.Close()
	defer os.Remove(file.Name())

	// Changed weights are computed when they are saved.
	weights, err := safetensors.Load("testdata/first.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	weights["float32"] = weights["float32"].MulScalar(0.5)
	if err := safetensors.Save(file.Name(), weights, map[string]string{"format": "pt"}); err != nil {
		fmt.Println(err)
		return
	}
	again, err := safetensors.Load(file.Name())
	fmt.Println(again["float32"], err)
	// Output:
	// [[ 0.  -0.5  1. ]
	//  [-1.5  2.  -2.5]] <nil>
}

// A file may be part of the program.
func ExampleNewFile() {
	data, err := os.Open("testdata/names.safetensors") // or embedded, with bytes.NewReader
	if err != nil {
		fmt.Println(err)
		return
	}
	defer data.Close()
	info, err := data.Stat()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := safetensors.NewFile(data, info.Size())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", f.Names())
	// Output: ["a\"\\\né😀"]
}

// The place decides the device and the owner.
func ExampleLoadOn() {
	d, err := millrace.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = d.Scope(func(sc *millrace.Scope) error {
		weights, err := safetensors.LoadOn(sc, "testdata/first.safetensors")
		if err != nil {
			return err
		}
		fmt.Println(weights["int32"].Sum())
		return nil
	})
	fmt.Println(err) // the weights are released
	// Output:
	// -3
	// <nil>
}
