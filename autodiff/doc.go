// Package autodiff takes gradients of Go code that computes with millrace tensors, on any device.
//
//	w := autodiff.Watch(weight)                  // uses of w are followed
//	loss := x.MatMul(w).Sub(y).Square().Mean()   // ordinary code, with loops and branches
//	grads, err := autodiff.Grad(loss, w)         // grads[0] has w's shape
//	w.Set(w.Sub(grads[0].MulScalar(0.1)))        // w stays watched
//
// Code is not traced. Each op on a watched tensor, or on a tensor computed from one, makes a node.
// The node notes where the operands came from and keeps the values that the op's gradient needs.
// Grad visits these nodes from the last to the first. Gradients are ordinary tensors, made by
// ordinary ops. They fuse with each other and with the ops before and after them. A
// [millrace.Recording] whose function computes gradients replays them, and with [Options].Follow
// gradients have gradients of their own.
//
// Softmax, products, convolutions, norms, pooling and similar ops have one rule each, the usual one
// of a textbook (rules.go). If several elements are the maximum, the first one gets the gradient,
// as ArgMax selects it. Rules of 16-bit tensors compute in float32 and round their result once. So
// do sums of gradients. Gradients are added in the reverse order of recording, so each run gives
// the same bits. But a batch that is split into parts adds in another order than a whole batch, and
// may give other bits.
//
// Of the source, read walk.go first.
package autodiff
