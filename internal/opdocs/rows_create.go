package main

import (
	"bytes"

	"github.com/millrace-go/millrace"
)

// creation are the operations that make tensors.
var creation = []group{
	{"From Go values", "Packages npy, safetensors, imagex and gonum make tensors of files, images and matrices.", []row{
		op("FromSlice", func(o in) t { return millrace.FromSlice([]float32{1, 2, 3, 4}, 2, 2) }).of("all"),
		op("FromSliceOn", func(o in) t { return millrace.FromSliceOn(o.device, []float32{1, 2}) }).of("all"),
		op("Scalar", func(o in) t { return millrace.Scalar(int32(7)) }).of("all"),
		op("ScalarOn", func(o in) t { return millrace.ScalarOn(o.device, int32(7)) }).of("all"),
		op("FromReader", func(o in) (t, error) { return millrace.FromReader(bytes.NewReader([]byte{1, 2}), millrace.Uint8, 2) }).of("all"),
		op("FromReaderOn", func(o in) (t, error) {
			return millrace.FromReaderOn(o.device, bytes.NewReader([]byte{1, 2}), millrace.Uint8, 2)
		}).of("all"),
	}},
	{"Filled", "", []row{
		op("Zeros", func(o in) t { return millrace.Zeros(o.dt, 2, 2) }),
		op("ZerosOn", func(o in) t { return millrace.ZerosOn(o.device, o.dt, 2) }),
		op("Ones", func(o in) t { return millrace.Ones(o.dt, 2, 2) }),
		op("OnesOn", func(o in) t { return millrace.OnesOn(o.device, o.dt, 2) }),
		op("Full", func(o in) t { return millrace.Full(o.dt, 1, 2, 2) }),
		op("FullOn", func(o in) t { return millrace.FullOn(o.device, o.dt, 1, 2) }),
		op("Arange", func(o in) t { return millrace.Arange(o.dt, 0, 5, 1) }),
		op("ArangeOn", func(o in) t { return millrace.ArangeOn(o.device, o.dt, 0, 5, 1) }),
		op("Linspace", func(o in) t { return millrace.Linspace(o.dt, 0, 1, 5) }),
		op("LinspaceOn", func(o in) t { return millrace.LinspaceOn(o.device, o.dt, 0, 1, 5) }),
		op("Eye", func(o in) t { return millrace.Eye(o.dt, 2) }),
		op("EyeOn", func(o in) t { return millrace.EyeOn(o.device, o.dt, 2) }),
	}},
	{"Random", "Draws depend on the seed only: a Generator gives seeds.", []row{
		op("Uniform", func(o in) t { return millrace.Uniform(o.dt, 1, 3) }),
		op("UniformOn", func(o in) t { return millrace.UniformOn(o.device, o.dt, 1, 3) }),
		op("Normal", func(o in) t { return millrace.Normal(o.dt, 1, 3) }),
		op("NormalOn", func(o in) t { return millrace.NormalOn(o.device, o.dt, 1, 3) }),
		op("Integers", func(o in) t { return millrace.Integers(o.dt, 1, 0, 6, 4) }),
		op("IntegersOn", func(o in) t { return millrace.IntegersOn(o.device, o.dt, 1, 0, 6, 4) }),
		op("Permutation", func(o in) t { return millrace.Permutation(o.dt, 1, 5) }),
		op("PermutationOn", func(o in) t { return millrace.PermutationOn(o.device, o.dt, 1, 5) }),
		op("Multinomial", func(o in) t { return millrace.Multinomial(millrace.Int64, 1, o.v, 2, false) }),
		op("Tensor.Philox", func(o in) t { return o.x.Philox(o.x, o.x) }),
	}},
	{"Places", "", []row{
		op("Tensor.To", func(o in) t { return o.b.To(o.device) }),
	}},
}
