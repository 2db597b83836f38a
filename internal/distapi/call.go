package distapi

// Call is a collective of a World, a *dist.World, on a tensor, a *millrace.Tensor, without a
// derivative. It has this name, and its plan these lines, which are compared among the ranks: an
// error names the first one that differs.
type Call func(world any, name string, lines []string, tensor any) (result any)

// These calls are the World's methods of these names, with the sums of training steps. dist.Open sets
// them, and not dist itself: programs that only use package optim would be linked with all of dist
// otherwise.
var AllReduce, ReduceScatter, AllGather Call
