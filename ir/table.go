package ir

// table has one row per op, with everything the engine needs. If an op is not a primitive, its
// Expand defines it, for every tier.
var table = [NumOps]Info{
	OpInvalid: {Name: "invalid"},

	Full:    {Name: "full", Arity: 1, Class: ClassCreate, In: AllDTypes, Out: OutAttr, Expand: expandFull, Doc: "every element is the value"},
	Iota:    {Name: "iota", Arity: 2, Class: ClassCreate, In: Numbers, Out: OutAttr, Expand: expandIota, Indexed: true, Tol: tolRounding, Doc: "start + step*i, i the row-major position"},
	Uniform: {Name: "uniform", Arity: 1, Class: ClassCreate, In: Floats, Out: OutAttr, Expand: expandUniform, Indexed: true, Doc: "uniform on [0,1): Philox4x32-10 over seed and position"},
	Normal:  {Name: "normal", Arity: 1, Class: ClassCreate, In: Floats, Out: OutAttr, Expand: expandNormal, Indexed: true, Tol: Tolerance{Rel: 1e-5, Abs: 4e-6}, Doc: "standard normal: Box-Muller over the bits of uniform"},

	Neg:      {Name: "neg", Arity: 1, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "-x; integers wrap"},
	Abs:      {Name: "abs", Arity: 1, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "|x|; the least integer stays itself"},
	Sign:     {Name: "sign", Arity: 1, Class: ClassElementwise, In: Numbers, Expand: expandSign, Doc: "-1, 0 or 1; zeros keep their sign, NaN stays NaN"},
	Sqrt:     {Name: "sqrt", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Tol: tolRounding, Doc: "IEEE square root"},
	Rsqrt:    {Name: "rsqrt", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandRsqrt, Tol: tolRounding, Doc: "1/sqrt(x)"},
	Recip:    {Name: "recip", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandRecip, Tol: tolRounding, Doc: "1/x"},
	Square:   {Name: "square", Arity: 1, Class: ClassElementwise, In: Numbers, Expand: expandSquare, Doc: "x*x"},
	Exp:      {Name: "exp", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandExp, Tol: tolMath, Doc: "e to the x"},
	Exp2:     {Name: "exp2", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandExp2, Tol: tolMath, Doc: "2 to the x"},
	Expm1:    {Name: "expm1", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandExpm1, Tol: tolMath, Doc: "exp(x) - 1, accurate near 0"},
	Log:      {Name: "log", Arity: 1, Class: ClassElementwise, In: Floats, Expand: byFloat(log32, log64), Tol: tolMath, Doc: "natural logarithm"},
	Log2:     {Name: "log2", Arity: 1, Class: ClassElementwise, In: Floats, Expand: byFloat(log2f32, log2f64), Tol: tolMath, Doc: "base-2 logarithm"},
	Log1p:    {Name: "log1p", Arity: 1, Class: ClassElementwise, In: Floats, Expand: byFloat(log1pf32, log1pf64), Tol: tolMath, Doc: "log(1 + x), accurate near 0"},
	Sin:      {Name: "sin", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSin, Tol: tolMath, Doc: "sine of x radians"},
	Cos:      {Name: "cos", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandCos, Tol: tolMath, Doc: "cosine of x radians"},
	Tan:      {Name: "tan", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandTan, Tol: tolMath, Doc: "tangent of x radians"},
	Tanh:     {Name: "tanh", Arity: 1, Class: ClassElementwise, In: Floats, Expand: byFloat(tanh32, tanh64), Tol: tolMath, Doc: "hyperbolic tangent"},
	Sinh:     {Name: "sinh", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSinh, Tol: tolMath, Doc: "hyperbolic sine"},
	Cosh:     {Name: "cosh", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandCosh, Tol: tolMath, Doc: "hyperbolic cosine"},
	Asin:     {Name: "asin", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandAsin, Tol: tolMath, Doc: "arc sine, in radians"},
	Acos:     {Name: "acos", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandAcos, Tol: tolMath, Doc: "arc cosine, in radians"},
	Atan:     {Name: "atan", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandAtan, Tol: tolMath, Doc: "arc tangent, in radians"},
	Sigmoid:  {Name: "sigmoid", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSigmoid, Tol: tolMath, Doc: "1/(1 + exp(-x))"},
	Erf:      {Name: "erf", Arity: 1, Class: ClassElementwise, In: Floats, Expand: byFloat(erf32, erf64), Tol: tolMath, Doc: "error function"},
	Relu:     {Name: "relu", Arity: 1, Class: ClassElementwise, In: Numbers, Expand: expandRelu, Doc: "x where positive, else 0; NaN stays NaN"},
	Gelu:     {Name: "gelu", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandGelu, Tol: tolMath, Doc: "x*(erf(x/sqrt 2) + 1)/2"},
	GeluTanh: {Name: "gelutanh", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandGeluTanh, Tol: tolMath, Doc: "0.5*x*(1 + tanh(sqrt(2/pi)*(x + 0.044715*x^3)))"},
	Silu:     {Name: "silu", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSilu, Tol: tolMath, Doc: "x*sigmoid(x)"},
	Softplus: {Name: "softplus", Arity: 1, Class: ClassElementwise, In: Floats, Expand: expandSoftplus, Tol: tolMath, Doc: "log(1 + exp(x))"},
	Floor:    {Name: "floor", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Doc: "the integer at or below x"},
	Ceil:     {Name: "ceil", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Doc: "the integer at or above x"},
	Round:    {Name: "round", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Doc: "the nearest integer, half to even"},
	Trunc:    {Name: "trunc", Arity: 1, Class: ClassElementwise, In: Floats, Prim: true, Doc: "the integer part"},
	Not:      {Name: "not", Arity: 1, Class: ClassElementwise, In: Bools | Ints, Prim: true, Doc: "logical on bool, every bit on integers"},
	IsNaN:    {Name: "isnan", Arity: 1, Class: ClassElementwise, In: Floats, Out: OutBool, Expand: expandIsNaN, Doc: "x is not a number"},
	IsInf:    {Name: "isinf", Arity: 1, Class: ClassElementwise, In: Floats, Out: OutBool, Expand: expandIsInf, Doc: "x is an infinity"},
	IsFinite: {Name: "isfinite", Arity: 1, Class: ClassElementwise, In: Floats, Out: OutBool, Expand: expandIsFinite, Doc: "x is neither infinite nor NaN"},
	Cast:     {Name: "cast", Arity: 1, Class: ClassElementwise, In: AllDTypes, Out: OutAttr, Expand: expandCast, Doc: "conversion to another dtype; saturates, NaN becomes 0, to bool is x != 0"},

	Reinterpret: {Name: "reinterpret", Arity: 1, Class: ClassElementwise, In: Numbers, Out: OutWidth, Expand: expandReinterpret, Doc: "the same bits as another dtype of that width; a NaN's are those of the quiet one without a sign"},

	Add:      {Name: "add", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Commutes: true, Doc: "x + y"},
	Sub:      {Name: "sub", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Doc: "x - y"},
	Mul:      {Name: "mul", Arity: 2, Class: ClassElementwise, In: Numbers, Prim: true, Commutes: true, Doc: "x * y"},
	Div:      {Name: "div", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandDiv, Tol: tolRounding, Doc: "x / y; integers truncate and x/0 = 0"},
	FloorDiv: {Name: "floordiv", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandFloorDiv, Tol: tolMath, Doc: "x / y rounded down; integer x/0 = 0"},
	Rem:      {Name: "rem", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandRem, Tol: tolMath, Doc: "remainder of floordiv, with the sign of y; integer remainder by 0 is 0"},
	Pow:      {Name: "pow", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandPow, Tol: Tolerance{Rel: 1e-4, Abs: 1e-6}, Doc: "x to the y; integer powers wrap, negative ones truncate"},
	Maximum:  {Name: "maximum", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandMaximum, Commutes: true, Doc: "the larger; NaN propagates, -0 < +0"},
	Minimum:  {Name: "minimum", Arity: 2, Class: ClassElementwise, In: Numbers, Expand: expandMinimum, Commutes: true, Doc: "the smaller; NaN propagates, -0 < +0"},
	Atan2:    {Name: "atan2", Arity: 2, Class: ClassElementwise, In: Floats, Expand: expandAtan2, Tol: tolMath, Doc: "angle of the point (y, x), operands in that order, in radians"},
	And:      {Name: "and", Arity: 2, Class: ClassElementwise, In: Bools | Ints, Prim: true, Commutes: true, Doc: "logical on bool, bitwise on integers"},
	Or:       {Name: "or", Arity: 2, Class: ClassElementwise, In: Bools | Ints, Prim: true, Commutes: true, Doc: "logical on bool, bitwise on integers"},
	Xor:      {Name: "xor", Arity: 2, Class: ClassElementwise, In: Bools | Ints, Prim: true, Commutes: true, Doc: "logical on bool, bitwise on integers"},
	Shl:      {Name: "shl", Arity: 2, Class: ClassElementwise, In: Ints, Expand: expandShl, Doc: "x << y; 0 where y is negative or past the width"},
	Shr:      {Name: "shr", Arity: 2, Class: ClassElementwise, In: Ints, Expand: expandShr, Doc: "x >> y; only the sign is left where y is negative or past the width"},
	MulHigh:  {Name: "mulhigh", Arity: 2, Class: ClassElementwise, In: SetOf(Uint32, Uint64), Expand: expandMulHigh, Commutes: true, Doc: "high half of the product, of which mul is the low one"},

	Eq: {Name: "eq", Arity: 2, Class: ClassElementwise, In: AllDTypes, Out: OutBool, Prim: true, Commutes: true, Doc: "x == y"},
	Ne: {Name: "ne", Arity: 2, Class: ClassElementwise, In: AllDTypes, Out: OutBool, Prim: true, Commutes: true, Doc: "x != y; true when either is NaN"},
	Lt: {Name: "lt", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x < y"},
	Le: {Name: "le", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x <= y"},
	Gt: {Name: "gt", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x > y"},
	Ge: {Name: "ge", Arity: 2, Class: ClassElementwise, In: Numbers, Out: OutBool, Prim: true, Doc: "x >= y"},

	Where: {Name: "where", Arity: 3, Class: ClassElementwise, In: AllDTypes, Out: OutLast, Prim: true, Doc: "mask ? x : y"},
	Clamp: {Name: "clamp", Arity: 3, Class: ClassElementwise, In: Numbers, Expand: expandClamp, Doc: "minimum(maximum(x, lo), hi)"},

	Philox: {Name: "philox", Arity: 3, Class: ClassElementwise, In: SetOf(Uint32, Uint64), Expand: expandPhilox, Doc: "random bits: the first words of Philox4x32-10's block at a counter, of which the second operand is the high half, under a key"},

	Reshape: {Name: "reshape", Arity: 1, Class: ClassView, In: AllDTypes, Doc: "the same elements in row-major order under another shape"},
	Permute: {Name: "permute", Arity: 1, Class: ClassView, In: AllDTypes, Attrs: AttrAxes, Doc: "dimensions in another order"},
	Slice:   {Name: "slice", Arity: 1, Class: ClassView, In: AllDTypes, Attrs: AttrStart | AttrStep, Doc: "start and step per dimension"},
	Expand:  {Name: "expand", Arity: 1, Class: ClassView, In: AllDTypes, Doc: "dimensions of size 1 repeated"},
	Window:  {Name: "window", Arity: 1, Class: ClassView, In: AllDTypes, Attrs: AttrAxes | AttrStep, Doc: "windows along an axis, as two dimensions: which window, and where in it"},

	Sum:    {Name: "sum", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: Add, Tol: tolFold, Doc: "sum over axes; of no elements 0"},
	Prod:   {Name: "prod", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: Mul, Tol: tolFold, Doc: "product over axes; of no elements 1"},
	Max:    {Name: "max", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: Maximum, NeedsElement: true, Doc: "maximum over axes; NaN propagates"},
	Min:    {Name: "min", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: Minimum, NeedsElement: true, Doc: "minimum over axes; NaN propagates"},
	Any:    {Name: "any", Arity: 1, Class: ClassReduce, In: Bools, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: Or, Doc: "some element over axes is true"},
	All:    {Name: "all", Arity: 1, Class: ClassReduce, In: Bools, Attrs: AttrAxes | AttrKeep, RowOp: true, Combine: And, Doc: "no element over axes is false"},
	ArgMax: {Name: "argmax", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, Out: OutAttr, RowOp: true, Position: true, NeedsElement: true, Doc: "position of the maximum over axes: of the first NaN, else of the first of equals"},
	ArgMin: {Name: "argmin", Arity: 1, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, Out: OutAttr, RowOp: true, Position: true, NeedsElement: true, Doc: "position of the minimum over axes: of the first NaN, else of the first of equals"},
	Dot:    {Name: "dot", Arity: 2, Class: ClassReduce, In: Numbers, Attrs: AttrAxes | AttrKeep, RowOp: true, Tol: tolFold, Doc: "sum over axes of x*y, in the order of a contraction; of no elements 0"},

	CumSum:  {Name: "cumsum", Arity: 1, Class: ClassScan, In: Numbers, Attrs: AttrAxes, RowOp: true, Combine: Add, Tol: tolFold, Doc: "sum of the elements up to each along an axis"},
	CumProd: {Name: "cumprod", Arity: 1, Class: ClassScan, In: Numbers, Attrs: AttrAxes, RowOp: true, Combine: Mul, Tol: tolFold, Doc: "product of the elements up to each along an axis"},
	CumMax:  {Name: "cummax", Arity: 1, Class: ClassScan, In: Numbers, Attrs: AttrAxes, RowOp: true, Combine: Maximum, Doc: "maximum of the elements up to each along an axis"},
	CumMin:  {Name: "cummin", Arity: 1, Class: ClassScan, In: Numbers, Attrs: AttrAxes, RowOp: true, Combine: Minimum, Doc: "minimum of the elements up to each along an axis"},

	Sort:    {Name: "sort", Arity: 1, Class: ClassSort, In: Numbers, Attrs: AttrAxes | AttrDescending, RowOp: true, Doc: "elements in order along an axis; NaN last, -0 before +0"},
	ArgSort: {Name: "argsort", Arity: 1, Class: ClassSort, In: Numbers, Attrs: AttrAxes | AttrDescending, Out: OutAttr, RowOp: true, Position: true, Doc: "positions that sort an axis, equals in their order"},

	Pad:    {Name: "pad", Arity: 2, Class: ClassMove, In: AllDTypes, Attrs: AttrStart | AttrStep, Doc: "elements of a value before, after and between those of x"},
	Concat: {Name: "concat", Arity: 2, Class: ClassMove, In: AllDTypes, Attrs: AttrAxes, Doc: "x and then y along an axis"},
	Assign: {Name: "assign", Arity: 2, Class: ClassMove, In: AllDTypes, Attrs: AttrStart | AttrStep, Doc: "x with the elements of a slice replaced by u's"},

	Gather:  {Name: "gather", Arity: 2, Class: ClassGather, In: AllDTypes, Attrs: AttrAxes | AttrMode, Doc: "elements of x along an axis at the indices"},
	Scatter: {Name: "scatter", Arity: 3, Class: ClassScatter, In: AllDTypes, Attrs: AttrAxes | AttrMode | AttrCombine, RowOp: true, Tol: tolFold, Doc: "x with elements along an axis at the indices combined with u's, in order"},

	Release: {Name: "release", Arity: 1, Class: ClassMark, In: AllDTypes, Doc: "the program is done with a tensor"},
	Keep:    {Name: "keep", Arity: 1, Class: ClassMark, In: AllDTypes, Doc: "the program wants a tensor written"},

	Const:   {Name: "const", Class: ClassPrim, Out: OutAttr, Prim: true, Doc: "constant"},
	Param:   {Name: "param", Class: ClassPrim, Out: OutAttr, Prim: true, Outside: true, Doc: "parameter of a scalar program"},
	Load:    {Name: "load", Optional: 1, Class: ClassPrim, Out: OutAttr, Prim: true, Outside: true, Doc: "element of an operand"},
	LoadAt:  {Name: "loadat", Arity: 1, Optional: 1, Class: ClassPrim, In: IndexDTypes, Out: OutAttr, Prim: true, Outside: true, Doc: "element of an operand at an index"},
	IndexLo: {Name: "indexlo", Class: ClassPrim, Out: OutAttr, Prim: true, Outside: true, Doc: "low half of an element's position"},
	IndexHi: {Name: "indexhi", Class: ClassPrim, Out: OutAttr, Prim: true, Outside: true, Doc: "high half of an element's position"},
	Scalar:  {Name: "scalar", Class: ClassPrim, Out: OutAttr, Prim: true, Outside: true, Doc: "run-time scalar of a kernel"},
	FMA:     {Name: "fma", Arity: 3, Class: ClassPrim, In: Floats, Prim: true, Commutes: true, Doc: "x*y + z rounded once"},
	FDiv:    {Name: "fdiv", Arity: 2, Class: ClassPrim, In: Floats, Prim: true, Doc: "IEEE quotient"},
	Flush:   {Name: "flush", Arity: 1, Class: ClassPrim, In: Floats, Expand: expandFlush, Doc: "x, or for a denormal the zero of its sign"},
	Quo:     {Name: "quo", Arity: 2, Class: ClassPrim, In: Ints, Prim: true, Doc: "integer quotient toward zero, operands in range"},
	Mod:     {Name: "mod", Arity: 2, Class: ClassPrim, In: Ints, Prim: true, Doc: "remainder of quo"},
	MulHi:   {Name: "mulhi", Arity: 2, Class: ClassPrim, In: SetOf(Uint32), Prim: true, Commutes: true, Doc: "high half of the product"},
	ShlRaw:  {Name: "shlraw", Arity: 2, Class: ClassPrim, In: Ints, Prim: true, Doc: "x << y, y within the width"},
	ShrRaw:  {Name: "shrraw", Arity: 2, Class: ClassPrim, In: Ints, Prim: true, Doc: "x >> y, y within the width"},
	Convert: {Name: "convert", Arity: 1, Class: ClassPrim, In: AllDTypes, Out: OutAttr, Prim: true, Doc: "value conversion, in range"},
	Bitcast: {Name: "bitcast", Arity: 1, Class: ClassPrim, In: AllDTypes, Out: OutAttr, Prim: true, Doc: "the same bits as another type"},
	Lookup:  {Name: "lookup", Arity: 1, Class: ClassPrim, In: SetOf(Int32), Out: OutAttr, Prim: true, Doc: "entry of a constant table"},
	Rare:    {Name: "rare", Arity: 4, Class: ClassPrim, In: AllDTypes, Out: OutAttr, Prim: true, Doc: "a sub-program in the few lanes that need it"},
}

// IndexDTypes are the dtypes of indices and of positions in a row.
var IndexDTypes = SetOf(Int32, Int64)

// The tolerances of a device that rounds as WGSL allows: quotients and roots differ by a few units
// in the last place, fma rounds twice, denormals are flushed. Ops without a tolerance are exact
// everywhere.
var (
	tolFold     = Tolerance{Rel: 1e-5, Abs: 1e-5}
	tolRounding = Tolerance{Rel: 1e-6, Abs: 1e-37}
	tolMath     = Tolerance{Rel: 1e-5, Abs: 1e-6}
)

// byFloat picks an expansion by the width of its one operand.
func byFloat(f32, f64 func(b *Builder, x Ref) Ref) func(*Builder, DType, []Ref) Ref {
	return func(b *Builder, dt DType, args []Ref) Ref {
		if dt == Float32 {
			return f32(b, args[0])
		}
		return f64(b, args[0])
	}
}
