package main

import (
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
)

// dataset makes images of classes: of each there is a pattern, to which noise is
// added. The same steps of two datasets give the same batches.
type dataset struct {
	r        *rand.Rand
	batch    int
	patterns [classes][pixels]float32
}

func newDataset(batch int) *dataset {
	d := &dataset{r: rand.New(rand.NewPCG(1, 2)), batch: batch}
	for c := range d.patterns {
		for i := range d.patterns[c] {
			d.patterns[c][i] = float32(d.r.NormFloat64())
		}
	}
	return d
}

// next is one batch: the trainer takes it over.
func (d *dataset) next() train.Batch {
	images, labels := make([]float32, d.batch*pixels), make([]int32, d.batch)
	for i := range labels {
		c := d.r.IntN(classes)
		labels[i] = int32(c)
		for k, p := range d.patterns[c] {
			images[i*pixels+k] = 0.2*p + 2*d.r.Float32() - 1
		}
	}
	return train.Batch{
		Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(images, d.batch, pixels)},
		Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, d.batch, 1)},
	}
}
