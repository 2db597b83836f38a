// Resnet trains ResNet-20 on CIFAR-10 (https://www.cs.toronto.edu/~kriz/cifar.html, binary
// version), or on a folder with a folder of PNGs or JPEGs for each class. Without either it
// trains on images that it makes, to show what a step costs.
//
//	go run ./examples/resnet -cifar cifar-10-batches-bin
//	go run ./examples/resnet -images photos
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"time"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/examples/models"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/optim"
)

type options struct {
	cifar, images string
	batch, epochs int
	steps         int
	layers        int
	lr            float64
	save          string
}

func main() {
	var o options
	flag.StringVar(&o.cifar, "cifar", "", "the folder with data_batch_1.bin and the others")
	flag.StringVar(&o.images, "images", "", "a folder with a folder of images for each class, all of one size")
	flag.IntVar(&o.batch, "batch", 128, "images a step")
	flag.IntVar(&o.epochs, "epochs", 10, "times to go over the images")
	flag.IntVar(&o.steps, "steps", 0, "steps to end after, whatever the epochs; 0 for none")
	flag.IntVar(&o.layers, "n", 3, "blocks a stage: 6n+2 layers")
	flag.Float64Var(&o.lr, "lr", 0.1, "the highest learning rate")
	flag.StringVar(&o.save, "save", "", "where to keep the weights, as safetensors")
	flag.Parse()
	if _, err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

// source of images and labels, and the number of classes.
func source(o options) (data.Source, int, error) {
	switch {
	case o.cifar != "":
		files, err := filepath.Glob(filepath.Join(o.cifar, "data_batch_*.bin"))
		if err != nil {
			return nil, 0, err
		}
		if len(files) == 0 {
			return nil, 0, fmt.Errorf("%s: no data_batch_*.bin: get the binary version of CIFAR-10 and unpack it there", o.cifar)
		}
		src, err := data.CIFAR10(files...)
		return src, 10, err
	case o.images != "":
		folder, err := data.Images(o.images, data.ImageOptions{})
		if err != nil {
			return nil, 0, err
		}
		return folder, len(folder.Classes), nil
	}
	fmt.Println("no -cifar and no -images: training on images that are made here, a bright square in one of ten places each")
	return made(2560), 10, nil
}

// made are images of noise with a bright square, whose place is the label.
func made(n int) data.Source {
	pixels, labels := make([]uint8, n*3*32*32), make([]int32, n)
	seed := uint32(1)
	for i := range pixels {
		seed = seed*1664525 + 1013904223
		pixels[i] = uint8(seed >> 26) // of 256 grades the lowest quarter
	}
	for i := range labels {
		label := i % 10
		labels[i] = int32(label)
		for c := range 3 {
			for y := range 6 {
				for x := range 6 {
					pixels[((i*3+c)*32+4+14*(label/5)+y)*32+1+6*(label%5)+x] += 150
				}
			}
		}
	}
	src, err := data.FromColumns(data.ColumnOf(pixels, 3, 32, 32), data.ColumnOf(labels))
	if err != nil {
		panic(err) // the columns are as long as each other
	}
	return src
}

// run trains and returns the last loss.
func run(ctx context.Context, o options) (float64, error) {
	src, classes, err := source(o)
	if err != nil {
		return 0, err
	}
	loader, err := data.NewLoader(src, data.Options{Batch: o.batch, Shuffle: true, Seed: 1, DropLast: true})
	if err != nil {
		return 0, err
	}
	model := models.NewResNet(o.layers, classes, nn.Seed(1))
	total := o.epochs * loader.Len()
	opt := optim.SGD(nn.Params(model), optim.Momentum(0.9), optim.WeightDecay(1e-4),
		optim.Schedule(optim.OneCycle(o.lr, max(total, 2))))
	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
		x := in[0].Cast(millrace.Float32).MulScalar(1.0 / 64).SubScalar(2)
		x = data.RandomFlip(c, data.RandomCrop(c, x, 4))
		return nn.CrossEntropy(model.Forward(c, x), in[1])
	}, optim.Record(), optim.Random(nn.NewRandom(1)))
	defer step.Close()

	if o.steps > 0 {
		total = min(total, o.steps)
	}
	began, n, last := time.Now(), 0, 0.0
	progress := models.Progress()
	for b, err := range models.Steps(ctx, loader, total) {
		if err != nil {
			return 0, err
		}
		loss, err := step.Run(ctx, b.X, b.Y)
		if err != nil {
			return 0, err
		}
		if n++; n%10 == 0 || n == total || n == 1 {
			v, err := millrace.Item[float32](loss)
			if err != nil {
				return 0, err
			}
			last = float64(v)
			progress.Say("epoch %3d  step %5d  loss %.4f  %.0f ms a step", b.Epoch+1, n, v, time.Since(began).Seconds()*1e3/float64(n))
		}
		loss.Release()
		b.Release()
	}
	progress.End()
	if o.save != "" {
		return last, models.Save(o.save, model, opt)
	}
	return last, nil
}
