// Package handle is for the modules of this repository: what they do with
// tensors that the public API has no word for.
//
// Engine part: no compatibility promise; use package millrace.
package handle

// Drop releases a tensor, a *millrace.Tensor, that nobody else has. Unlike
// Release it does not take down where that was, which is most of what Release
// costs. Package millrace sets it.
var Drop func(tensor any)
