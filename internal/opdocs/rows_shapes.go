package main

import (
	"github.com/millrace-go/millrace"
)

// shapes are the operations that move elements, or only say where they are.
var shapes = []group{
	{"Views", "", []row{
		op("Tensor.Reshape", func(o in) t { return o.x.Reshape(3, -1) }),
		op("Tensor.Flatten", func(o in) t { return o.x.Flatten(0, -1) }),
		op("Tensor.Permute", func(o in) t { return o.x.Permute(1, 0) }),
		op("Tensor.T", func(o in) t { return o.x.T() }),
		op("Tensor.Transpose", func(o in) t { return o.x.Transpose(0, 1) }),
		op("Tensor.MoveAxis", func(o in) t { return o.x.MoveAxis(0, 1) }),
		op("Tensor.Squeeze", func(o in) t { return o.image.Squeeze() }),
		op("Tensor.Unsqueeze", func(o in) t { return o.b.Unsqueeze(-1) }),
		op("Tensor.Expand", func(o in) t { return o.b.Expand(2, 2) }),
		op("Tensor.Slice", func(o in) t { return o.x.Slice(millrace.All, millrace.R(0, 2)) }),
		op("Tensor.Flip", func(o in) t { return o.x.Flip(1) }),
		op("Tensor.Diag", func(o in) t { return o.a.Diag(0) }),
		op("Tensor.Windows", func(o in) t { return o.v.Windows(0, millrace.Window{Size: 3}, 0) }),
		op("Split", func(o in) []t { return millrace.Split(o.v, 0, 2, 3) }),
		op("Chunk", func(o in) []t { return millrace.Chunk(o.v, 2, 0) }),
	}},
	{"Joining and repeating", "", []row{
		op("Concat", func(o in) t { return millrace.Concat(0, o.x, o.y) }),
		op("Stack", func(o in) t { return millrace.Stack(1, o.b, o.b) }),
		op("Tensor.Tile", func(o in) t { return o.b.Tile(2) }),
		op("Tensor.Repeat", func(o in) t { return o.b.Repeat(2, 0) }),
		op("Tensor.Pad", func(o in) t { return o.b.Pad(0, millrace.Padding{Before: 1, After: 2}) }),
		op("Tensor.Roll", func(o in) t { return o.v.Roll(1, 0) }),
		op("Tensor.Tril", func(o in) t { return o.a.Tril(0) }),
		op("Tensor.Triu", func(o in) t { return o.a.Triu(0) }),
		op("Tensor.Assign", func(o in) t { return o.x.Assign(o.y, millrace.All) }),
		op("Tensor.AssignScalar", func(o in) t { return o.x.AssignScalar(0, millrace.At(0)) }),
	}},
	{"By index", "Indices out of range are ErrIndex, unless an IndexMode says otherwise.", []row{
		op("Tensor.Take", func(o in) t { return o.x.Take(o.i, 1) }),
		op("Tensor.TakeAlong", func(o in) t { return o.x.TakeAlong(o.i.Unsqueeze(1), 1) }),
		op("Tensor.Put", func(o in) t { return o.x.Put(o.i, o.a, 1, millrace.CombineSet) }),
		op("Tensor.IndexSet", func(o in) t { return o.x.IndexSet(o.i, o.a, 1) }),
		op("Tensor.IndexAdd", func(o in) t { return o.x.IndexAdd(o.i, o.a, 1) }),
		op("Tensor.Scatter", func(o in) t { return o.v.Scatter(o.i, o.b, 0, millrace.CombineMax) }),
		op("Tensor.ScatterSet", func(o in) t { return o.v.ScatterSet(o.i, o.b, 0) }),
		op("Tensor.ScatterAdd", func(o in) t { return o.v.ScatterAdd(o.i, o.b, 0) }),
		op("Tensor.ScatterMax", func(o in) t { return o.v.ScatterMax(o.i, o.b, 0) }),
		op("Tensor.ScatterMin", func(o in) t { return o.v.ScatterMin(o.i, o.b, 0) }),
		op("Tensor.ScatterMul", func(o in) t { return o.v.ScatterMul(o.i, o.b, 0) }),
		op("Tensor.DynamicSlice", func(o in) t { return o.x.DynamicSlice(o.at, 2, 2) }),
		op("Tensor.DynamicUpdate", func(o in) t { return o.x.DynamicUpdate(o.a, o.at) }),
		op("Tensor.OneHot", func(o in) t { return o.i.OneHot(o.dt, 3) }).of("integers → dt"),
	}},
}
