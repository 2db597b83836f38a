package main

import (
	"context"
	"image"
	"image/color"
	"math"
	"math/rand/v2"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

// side is the height and width that images are brought to.
const side = 32

// labels are the shapes that there are.
var labels = []string{"disc", "square", "triangle", "cross"}

// newModel makes a convolutional network for gray images (n, 1, side, side).
func newModel() nn.Sequential {
	seed := nn.Seed(1)
	return nn.NewSequential(
		nn.NewConv2d(1, 8, 3, nn.Pad(1), seed), nn.NewBatchNorm2d(8), nn.ReLU{}, nn.NewMaxPool2d(2),
		nn.NewConv2d(8, 16, 3, nn.Pad(1), seed), nn.NewBatchNorm2d(16), nn.ReLU{}, nn.NewMaxPool2d(2),
		nn.Flatten{Start: 1},
		nn.NewLinear(16*side*side/16, 32, seed), nn.ReLU{},
		nn.NewLinear(32, len(labels), seed),
	)
}

// draw makes a picture of a shape: anywhere, of any size and brightness, among noise.
func draw(r *rand.Rand, label, size int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, size, size))
	s := float64(size)
	radius := s * (0.2 + 0.2*r.Float64())
	x0, y0 := radius+(s-2*radius)*r.Float64(), radius+(s-2*radius)*r.Float64()
	dark, bright := 80*r.Float64(), 160+80*r.Float64()
	for i := range size {
		for j := range size {
			x, y := (float64(j)+0.5-x0)/radius, (float64(i)+0.5-y0)/radius
			v := dark
			if inside(label, x, y) {
				v = bright
			}
			img.SetGray(j, i, color.Gray{Y: uint8(max(0, min(255, v+12*r.NormFloat64())))})
		}
	}
	return img
}

// inside reports a point of a shape about 0 that ends at 1.
func inside(label int, x, y float64) bool {
	ax, ay := math.Abs(x), math.Abs(y)
	switch labels[label] {
	case "disc":
		return x*x+y*y < 1
	case "square":
		return max(ax, ay) < 0.85
	case "triangle":
		return y < 0.9 && ax < (y+1)/2
	}
	return min(ax, ay) < 0.3 && max(ax, ay) < 1
}

// drawn are n images and their labels.
func drawn(seed uint64, n int) (data.Source, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	pixels, is := make([]float32, 0, n*side*side), make([]int32, n)
	for i := range is {
		is[i] = int32(r.IntN(len(labels)))
		for _, p := range draw(r, int(is[i]), side).Pix {
			pixels = append(pixels, float32(p)/255)
		}
	}
	return data.FromColumns(data.ColumnOf(pixels, 1, side, side), data.ColumnOf(is))
}

// train has the model learn from n images, and returns of which part of new ones it knows
// the shape.
func train(ctx context.Context, model nn.Module, n, epochs int) (float64, error) {
	src, err := drawn(1, n)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(src, data.Options{Batch: 25, Shuffle: true, Seed: 1, DropLast: true})
	if err != nil {
		return 0, err
	}
	opt := optim.AdamW(nn.Params(model), optim.Schedule(optim.Cosine(1e-2, epochs*loader.Len())))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
	}, optim.Record())
	defer step.Close()
	progress := models.Progress()
	for epoch := range epochs {
		sum := 0.0
		for b, err := range loader.Batches(ctx) {
			if err != nil {
				return 0, err
			}
			loss, err := step.Run(ctx, b.X, b.Y)
			if err != nil {
				return 0, err
			}
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return 0, err
			}
			sum += float64(v)
			loss.Release()
			b.Release()
		}
		progress.Say("epoch %d  loss %.4f", epoch+1, sum/float64(loader.Len()))
	}
	progress.End()
	return accuracy(ctx, model)
}

// accuracy is which part of 500 new images the model knows the shape of.
func accuracy(ctx context.Context, model nn.Module) (float64, error) {
	src, err := drawn(2, 500)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(src, data.Options{Batch: src.Len()})
	if err != nil {
		return 0, err
	}
	for b, err := range loader.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		defer b.Release()
		right := model.Forward(nn.Eval(), b.X).ArgMaxAs(millrace.Int32, -1).Eq(b.Y)
		v, err := millrace.Item[float32](right.Cast(millrace.Float32).Mean())
		return float64(v), err
	}
	return 0, nil
}
