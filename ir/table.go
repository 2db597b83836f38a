package ir

// table has one row per op. A row says everything the engine needs: where an
// op is not a primitive its Expand is its meaning, for every tier.
var table = [NumOps]Info{
	OpInvalid: {Name: "invalid"},

	Full:    {Name: "full", Arity: 1, Class: ClassCreate, In: All, Out: OutAttr, Doc: "every element is the value"},
	Iota:    {Name: "iota", Arity: 2, Class: ClassCreate, In: Numbers, Out: OutAttr, Indexed: true, Doc: "start + step*i"},
	Uniform: {Name: "uniform", Arity: 1, Class: ClassCreate, In: Floats, Out: OutAttr, Indexed: true, Doc: "uniform on [0,1)"},
	Normal:  {Name: "normal", Arity: 1, Class: ClassCreate, In: Floats, Out: OutAttr, Indexed: true, Doc: "standard normal"},

	Neg:  {Name: "neg", Arity: 1, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "-x"},
	Abs:  {Name: "abs", Arity: 1, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "|x|"},
	Sqrt: {Name: "sqrt", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Doc: "IEEE square root"},
	Add:  {Name: "add", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "x + y"},
	Sub:  {Name: "sub", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "x - y"},
	Mul:  {Name: "mul", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "x * y"},

	Eq: {Name: "eq", Arity: 2, Class: ClassElementwise, In: All, Out: OutBool, Prim: true, Doc: "x == y"},
	Ne: {Name: "ne", Arity: 2, Class: ClassElementwise, In: All, Out: OutBool, Prim: true, Doc: "x != y; true when either is NaN"},
	Lt: {Name: "lt", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x < y"},
	Le: {Name: "le", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x <= y"},
	Gt: {Name: "gt", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x > y"},
	Ge: {Name: "ge", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x >= y"},

	Where: {Name: "where", Arity: 3, Class: ClassElementwise, In: All, Out: OutLast, Prim: true, Doc: "mask ? x : y"},

	Reshape: {Name: "reshape", Arity: 1, Class: ClassView, In: All, Doc: "the same elements in row-major order under another shape"},
	Permute: {Name: "permute", Arity: 1, Class: ClassView, In: All, Doc: "dimensions in another order"},
	Slice:   {Name: "slice", Arity: 1, Class: ClassView, In: All, Doc: "start and step per dimension"},
	Expand:  {Name: "expand", Arity: 1, Class: ClassView, In: All, Doc: "dimensions of size 1 repeated"},

	Sum: {Name: "sum", Arity: 1, Class: ClassReduce, In: Numbers, Doc: "sum over axes"},
	Max: {Name: "max", Arity: 1, Class: ClassReduce, In: Numbers, Doc: "maximum over axes; NaN propagates"},

	Release: {Name: "release", Arity: 1, Class: ClassEntry, In: All},
	Keep:    {Name: "keep", Arity: 1, Class: ClassEntry, In: All},

	Const:   {Name: "const", Class: ClassPrim, Prim: true},
	Param:   {Name: "param", Class: ClassPrim, Prim: true},
	Load:    {Name: "load", Class: ClassPrim, Prim: true},
	IndexLo: {Name: "indexlo", Class: ClassPrim, Prim: true},
	IndexHi: {Name: "indexhi", Class: ClassPrim, Prim: true},
	Scalar:  {Name: "scalar", Class: ClassPrim, Prim: true},
	FMA:     {Name: "fma", Arity: 3, Class: ClassPrim, In: Floats, Prim: true},
	FDiv:    {Name: "fdiv", Arity: 2, Class: ClassPrim, In: Floats, Prim: true},
	Quo:     {Name: "quo", Arity: 2, Class: ClassPrim, In: Ints, Prim: true},
	Mod:     {Name: "mod", Arity: 2, Class: ClassPrim, In: Ints, Prim: true},
	MulHi:   {Name: "mulhi", Arity: 2, Class: ClassPrim, In: SetOf(Uint32), Prim: true},
	ShlRaw:  {Name: "shlraw", Arity: 2, Class: ClassPrim, In: Ints, Prim: true},
	ShrRaw:  {Name: "shrraw", Arity: 2, Class: ClassPrim, In: Ints, Prim: true},
	Convert: {Name: "convert", Arity: 1, Class: ClassPrim, In: All, Out: OutAttr, Prim: true},
	Bitcast: {Name: "bitcast", Arity: 1, Class: ClassPrim, In: All, Out: OutAttr, Prim: true},
	Lookup:  {Name: "lookup", Arity: 1, Class: ClassPrim, In: SetOf(Int32), Out: OutAttr, Prim: true},
	Rare:    {Name: "rare", Arity: 4, Class: ClassPrim, In: All, Out: OutAttr, Prim: true},
}
