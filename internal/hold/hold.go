package hold

// Turn belongs to the owner of parameters that change together.
type Turn interface {
	Order() uint64 // several Turns are held in this order
	Hold() error   // waits for running changes, and blocks changes until Free
	Free()
}

// Mark sets the Turn of a parameter, a *nn.Param. Saving or loading the parameter holds the Turn.
// Package nn sets this function.
var Mark func(param any, t Turn)
