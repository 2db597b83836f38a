package rowtext

// Softmax has two dependent reductions, an output of points and one of rows: the softmax and its
// logarithm's denominator.
const Softmax = `in 0 : float32
out 1 : float32
out 2 : float32 row
%0 = load 0 : float32
%1 = max %0 : float32
%2 = sub %0 %1 : float32
%3 = exp %2 : float32
%4 = sum %3 : float32
%5 = div %3 %4 : float32
%6 = log %4 : float32
%7 = add %6 %1 : float32
store 1 %5
store 2 %7
`

// Norm is a layer norm: a second reduction that depends on the first, and parameters of rows and of
// points. Operand 1 is added below a root.
const Norm = `in 0 : float32
in 1 : float32 row
in 2 : float32
out 3 : float32
out 4 : float32 row
scalar 0 : float32
%0 = load 0 : float32
%1 = scalar 0 : float32
%2 = sum %0 : float32
%3 = div %2 %1 : float32
%4 = sub %0 %3 : float32
%5 = mul %4 %4 : float32
%6 = sum %5 : float32
%7 = load 1 : float32
%8 = add %6 %7 : float32
%9 = rsqrt %8 : float32
%10 = mul %4 %9 : float32
%11 = load 2 : float32
%12 = mul %10 %11 : float32
store 3 %12
store 4 %3
`

// Mixed has independent reductions of several dtypes, and an index.
const Mixed = `in 0 : float32
in 1 : int32
index 2
out 3 : float32 row
out 4 : int32 row
out 5 : int64 row
out 6 : bool row
out 7 : float32
out 8 : bool
%0 = load 0 : float32
%1 = load 1 : int32
%2 = abs %0 : float32
%3 = sum %2 : float32
%4 = max %1 : int32
%5 = argmax %0 : int64
%6 = lt %0 %3 : bool
%7 = all %6 : bool
%8 = indexlo 2 : uint32
%9 = cast %8 : float32
%10 = add %9 %3 : float32
%11 = eq %1 %4 : bool
store 3 %3
store 4 %4
store 5 %5
store 6 %7
store 7 %10
store 8 %11
`

// Scan has cumulative ops, and a reduction of their results.
const Scan = `in 0 : float32
in 1 : float16
out 2 : float32
out 3 : float16
out 4 : float32 row
%0 = load 0 : float32
%1 = cumsum %0 : float32
%2 = exp %0 : float32
%3 = cummax %2 : float32
%4 = add %1 %3 : float32
%5 = sum %4 : float32
%6 = load 1 : float16
%7 = cumsum %6 : float16
%8 = min %1 : float32
%9 = sub %5 %8 : float32
store 2 %4
store 3 %7
store 4 %9
`

// Sort has sorts and their positions, in both directions.
const Sort = `in 0 : float32
in 1 : int16
out 2 : float32
out 3 : int32
out 4 : int16
out 5 : int64
%0 = load 0 : float32
%1 = abs %0 : float32
%2 = sort %1 : float32
%3 = argsort descending %0 : int32
%4 = load 1 : int16
%5 = sort descending %4 : int16
%6 = argsort %4 : int64
store 2 %2
store 3 %3
store 4 %5
store 5 %6
`

// All are the kernels by name.
var All = map[string]string{"softmax": Softmax, "norm": Norm, "mixed": Mixed, "scan": Scan, "sort": Sort}
