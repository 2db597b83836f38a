package imagex_test

import (
	"errors"
	"fmt"
	"image"
	"image/color"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/imagex"
)

// Models that were trained on channels last get them so, and colours without alpha.
func ExampleFromImage() {
	img := image.NewRGBA(image.Rect(0, 0, 2, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	img.Set(1, 0, color.RGBA{B: 128, A: 255})
	x := imagex.FromImage(img, imagex.Options{Channels: 3, Last: true})
	fmt.Println(x.Shape(), x)
	batch := millrace.Stack(0, x, x)
	fmt.Println(batch.Shape())
	// Output:
	// [1 2 3] [[[255   0   0]
	//   [  0   0 128]]]
	// [2 1 2 3]
}

// Numbers outside of 0 to 1 are cut off, and two channels are no image.
func ExampleImage() {
	img, err := imagex.Image(millrace.FromSlice([]float32{-1, 0.5, 7}, 1, 1, 3), imagex.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(img.(*image.Gray).Pix)
	_, err = imagex.Image(millrace.Zeros(millrace.Uint8, 2, 4, 4), imagex.Options{})
	fmt.Println(errors.Is(err, millrace.ErrShape))
	// Output:
	// [0 128 255]
	// true
}
