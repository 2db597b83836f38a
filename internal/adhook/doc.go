// Package adhook is the joint between package millrace, which records ops, and package autodiff,
// which takes their derivatives. Neither can name the other's unexported parts, so each sees the
// other through an interface of this package. T is millrace.Tensor, which this package cannot
// import.
//
// Input: an op on tensors that autodiff follows, as a [Call]. Output: the [Node] that the op's
// result carries. Read adhook.go first; composite.go lists the composites with rules of their own.
//
// Engine part: no compatibility promise; use package autodiff.
package adhook
