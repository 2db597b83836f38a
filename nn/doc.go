// Package nn has layers, losses and initial values of neural networks, on top of package millrace.
//
// A module is an ordinary Go struct with a method Forward:
//
//	type classifier struct {
//		Hidden *nn.Linear
//		Out    *nn.Linear
//	}
//
//	func (m *classifier) Forward(c *nn.Ctx, x *millrace.Tensor) *millrace.Tensor {
//		return m.Out.Forward(c, m.Hidden.Forward(c, x).Relu())
//	}
//
//	seed := nn.Seed(1)
//	m := &classifier{nn.NewLinear(64, 128, seed), nn.NewLinear(128, 10, seed)}
//	y := m.Forward(nn.Eval(), x)
//
// # Parameters
//
// A module stores what it learns in a [Param]. It also stores state that lasts from step to step
// there, such as the running means of [BatchNorm]; such Params are buffers. [Params] finds all
// Params by reflection and names them as PyTorch's state_dict does, "hidden.weight" and "out.bias"
// here. Therefore [Load] reads weights that PyTorch saved, and PyTorch loads files that [Save]
// wrote. Layers use PyTorch's weight layouts, defaults and distributions of first values.
//
// # A forward pass
//
// A [Ctx] says what a forward pass is for: whether it trains, the source of random numbers, the
// dtype to compute in, and whether parameters are followed for gradients. [Eval] is a pass that
// does none of it. A program with its own training loop ends each step with [Ctx.Commit], which
// gives buffers their new values; the Step of package optim does that itself.
//
// # Mixed precision
//
// With a 16-bit DType in the Ctx, layers cast their inputs and weights to it. The weights
// themselves and the gradients with respect to them stay in float32. Norms, running statistics
// and losses are computed in float32.
//
// # Errors
//
// Like ops, layers and losses never panic on bad input: the result carries an error that names the
// layer, the shapes and the line of the program. The error of a constructor's bad argument is
// carried by the layer's parameters and results.
//
// Of the source, read module.go first.
package nn
