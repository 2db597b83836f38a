// Package autodiff takes gradients of what Go code computes with millrace tensors, on
// any device.
//
//	w := autodiff.Watch(weight)                  // uses of w are followed
//	loss := x.MatMul(w).Sub(y).Square().Mean()   // ordinary code, with loops and branches
//	grads, err := autodiff.Grad(loss, w)         // grads[0] has w's shape
//	w.Set(w.Sub(grads[0].MulScalar(0.1)))        // w stays watched
//
// Nothing is traced: each op on a watched tensor, or on what was computed from one, notes
// where its operands came from and keeps those values that its gradient asks for. Grad
// goes through these notes from the last to the first. Gradients are ordinary tensors,
// made by ordinary ops: they fuse with each other and with what comes before and after,
// they are replayed by a [millrace.Recording] whose function computes them, and with
// [Options].Follow they have gradients of their own.
//
// Softmax, products, convolutions, norms, pooling and the like have one rule each, the one
// of a textbook (rules.go). Where several elements are the largest, the first one gets the
// gradient, as ArgMax has it. Rules of 16-bit tensors compute in float32 and round their
// result once, and so do sums of gradients. Gradients add up in the reverse order of recording; so they have the same
// bits each time, but a batch that is split adds up in another order than a whole one.
package autodiff
