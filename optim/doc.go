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
// [SGD], [Adam], [AdamW], [RMSProp] and [Adagrad] have PyTorch's formulas, names and
// defaults, and give its numbers; [Lion] and [LAMB] have those of their papers. An update
// is computed in the parameter's dtype, and that of a parameter of 16 bits, with all that
// is kept for it, in float32. Whoever takes gradients himself calls [Optimizer.Update].
//
// A parameter has no gradient if the loss does not use it, or if it is frozen. It then stays
// unchanged, without decay. Each parameter counts its own updates. A weight that is used in several
// places has one gradient and one update.
//
// # Steps
//
// A [Step] runs a function that computes a loss, takes the gradients by the parameters
// that it used, and updates them; buffers, such as running means, and random numbers move
// on with it. With [Record] all of that is recorded once for each kind of inputs and then
// run at little cost, with the same bits. Learning rates, counts, loss scales and random
// counters are tensors, so that a recorded step goes on with them.
//
// In a step that is not recorded gradients are computed before anything changes: where
// memory runs out, or an index is out of range, all parameters are what they were. A
// recorded step promises that of what is found before it runs, such as a bad shape. What
// only running finds is carried by the parameters that depend on it: load them again.
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
package optim
