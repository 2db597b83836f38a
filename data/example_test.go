package data_test

import (
	"context"
	"fmt"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/nn"
)

// Digits are split, shuffled, and returned in batches. The options of the reader decide the form of
// a record: here images of one channel, and the class as a number.
func Example() {
	digits, err := data.CSV("testdata/digits.csv", data.CSVOptions{Comment: '#', Label: "-1", Classes: 10, Shape: []int{1, 8, 8}})
	if err != nil {
		fmt.Println(err)
		return
	}
	train, held, err := data.Split(digits, 0.8, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(train.Len(), "digits to learn from,", held.Len(), "held out")
	loader, err := data.NewLoader(train, data.Options{Batch: 100, Shuffle: true, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ink := 0.0
	for range 2 { // epochs
		for b, err := range loader.Batches(context.Background()) {
			if err != nil {
				fmt.Println(err)
				return
			}
			sum, err := millrace.Item[float32](b.X.Sum())
			if err != nil {
				fmt.Println(err)
				return
			}
			ink += float64(sum)
			fmt.Println("epoch", b.Epoch, b.X.Shape(), b.Y.Shape())
			b.Release()
		}
	}
	// Output:
	// 240 digits to learn from, 60 held out
	// epoch 0 [100 1 8 8] [100]
	// epoch 0 [100 1 8 8] [100]
	// epoch 0 [40 1 8 8] [40]
	// epoch 1 [100 1 8 8] [100]
	// epoch 1 [100 1 8 8] [100]
	// epoch 1 [40 1 8 8] [40]
}

// A language model of characters learns from windows at random places.
func ExampleWindows() {
	text := "To be, or not to be, that is the question"
	v, err := data.NewVocabulary(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := v.Encode(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	windows, err := data.Windows(tokens, 6, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	loader, err := data.NewLoader(windows, data.Options{Batch: 4, Shuffle: true, Seed: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for b, err := range loader.Batches(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		x, _ := millrace.Values[int32](b.X.Slice(millrace.At(0)))
		y, _ := millrace.Values[int32](b.Y.Slice(millrace.At(0)))
		before, _ := v.Decode(x)
		after, _ := v.Decode(y)
		fmt.Printf("%v %q %q\n", b.X.Shape(), before, after)
		break
	}
	// Output:
	// [4 6] "o be, " " be, o"
}

// Images are shifted, flipped and normalised on the device, in a training step or as here. The
// random numbers come from the context of nn's forward pass.
func ExampleRandomCrop() {
	c := nn.NewCtx(nn.CtxOptions{Random: nn.NewRandom(1)})
	images := millrace.Ones(millrace.Uint8, 16, 3, 32, 32).MulScalar(255)
	x := data.RandomFlip(c, data.RandomCrop(c, images, 4))
	x = data.Normalize(x, []float64{0.5, 0.5, 0.5}, []float64{0.25, 0.25, 0.25})
	fmt.Println(x.DType(), x.Shape(), x.Max())
	// Output:
	// float32 [16 3 32 32] 2.0
}
