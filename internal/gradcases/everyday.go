package gradcases

import "github.com/millrace-go/millrace"

// everyday are ops that are made of others.
var everyday = []Case{
	{"diagvector", one(func(x *T) *T { return x.Diag(-1).Square() }), ops{in(-1, 1, 3)}}, {"diagmatrix", one(func(x *T) *T { return x.Diag(1).Square() }), a34},
	{"trace", one(func(x *T) *T { return x.Square().Trace() }), ops{in(-1, 1, 2, 3, 3)}}, {"outer", two(millrace.Outer), ops{in(-1, 1, 3), in(-1, 1, 4)}},
	{"split", one(func(x *T) *T { s := millrace.Split(x, 1, 1, 3); return s[0].Square().Mul(s[1]) }), a34},
	{"chunk", one(func(x *T) *T { s := millrace.Chunk(x, 2, -1); return s[0].Square().Mul(s[1]) }), a34},
	{"transpose", one(func(x *T) *T { return x.Transpose(0, 2).Square() }), ops{in(-1, 1, 2, 3, 4)}}, {"moveaxis", one(func(x *T) *T { return x.MoveAxis(0, 2).Square() }), ops{in(-1, 1, 2, 3, 4)}},
	{"log10", one((*T).Log10), ops{in(0.5, 12, 5)}}, {"asinh", one((*T).Asinh), a34}, {"acosh", one((*T).Acosh), ops{in(1.2, 5, 5)}}, {"atanh", one((*T).Atanh), ops{in(-0.8, 0.8, 5)}},
	{"flatten", one(func(x *T) *T { return x.Flatten(0, 1).Square() }), ops{in(-1, 1, 2, 3, 4)}},
}
