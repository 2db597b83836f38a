// Package optim trains modules of package nn: update rules, learning rates, and training steps.
//
//	model := newModel(nn.Seed(1))                        // an ordinary struct
//	opt := optim.AdamW(nn.Params(model),
//		optim.Schedule(optim.Warmup(100, 0, optim.Cosine(3e-4, 5000))),
//		optim.ClipNorm(1),
//		optim.Group(isBias, optim.WeightDecay(0)))
//	step := opt.Step(func(c *nn.Ctx, in []*millrace.Tensor) *millrace.Tensor {
//		return nn.CrossEntropy(model.Forward(c, in[0]), in[1])
//	}, optim.Record())                                   // leave out to debug
//	defer step.Close()
//	for x, y := range batches {
//		loss, err := step.Run(ctx, x, y)
//		...
//	}
//	err := nn.Save("model.safetensors", model, opt)
//
// # Rules
//
// [SGD], [Adam], [AdamW], [RMSProp] and [Adagrad] have PyTorch's formulas, names and defaults, and
// give its numbers; [Lion] and [LAMB] have those of their papers. An update is computed in the
// parameter's dtype; for a 16-bit parameter the update and its state are in float32. A program that
// takes gradients itself calls [Optimizer.Update].
//
// A parameter has no gradient if the loss does not use it, or if it is frozen. It then stays
// unchanged, without decay. Each parameter counts its own updates. A weight that is used in several
// places has one gradient and one update.
//
// # Steps
//
// A [Step] runs a function that computes a loss, takes the gradients with respect to the
// parameters that the function used, and updates them. It also updates buffers, such as running
// means, and the state of random numbers. With [Record] the step is recorded once for each kind of
// inputs and then replayed at little cost, with the same bits. Learning rates, counts, loss scales
// and random counters are tensors, which a recorded step updates as well.
//
// A step that is not recorded computes the gradients before it changes anything. If memory runs
// out or an index is out of range, all parameters keep their values. A recorded step guarantees
// this for errors found before it runs, such as a bad shape. Errors found during the run are
// carried by the parameters that depend on them; those must be loaded again.
//
// [Across] makes a step one of several processes: see package dist.
//
// # Half precision
//
// [Compute] makes layers compute in bfloat16 or float16 while parameters stay float32. float16 also
// needs a [LossScale].
//
// # State
//
// [nn.Save] and [nn.Load] take an optimiser beside its model. A run that continues from a file has
// the bits of an uninterrupted run, if it gets the same batches and its [nn.Random] is saved as
// well.
//
// Of the source, read step.go first.
package optim
