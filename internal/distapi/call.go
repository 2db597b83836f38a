package distapi

// AllReduce is AllReduce of a World, a *dist.World, on a tensor, a *millrace.Tensor, without a
// derivative. The call has this name, and its plan these lines, which are compared among the ranks:
// an error names the first one that differs.
//
// dist.Open sets it, and not dist itself: programs that only use package optim would be linked with
// all of dist otherwise.
var AllReduce func(world any, name string, lines []string, tensor any) (sum any)
