package hold

// Part says which elements of a larger tensor a parameter has: those of one rank. The parameter is
// a vector.
type Part struct {
	World any   // the *dist.World of the ranks; rank r has the r-th part
	Shape []int // of the larger tensor
	From  int   // the first element, in row-major order
	To    int   // one after the last; the rest of the vector is of no use
}

// Package nn sets these functions. Params are *nn.Param and tensors *millrace.Tensor.
var (
	// MarkPart makes a parameter a part. nn.Save then refuses it, and nn.Load cuts the part out of
	// the file's entry.
	MarkPart func(param any, p *Part)
	// PartOf is a parameter's Part, or nil.
	PartOf func(param any) *Part
	// SetPart sets a parameter to its part of a tensor, in memory of its own.
	SetPart func(param, whole any) error
)
