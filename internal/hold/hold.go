// Package hold has parameters that change together, as those of an optimiser do, stay as they
// are while package nn saves or loads them.
//
// Engine part: no compatibility promise; use packages nn and optim.
package hold

// Turn is whoever changes the parameters.
type Turn interface {
	Order() uint64 // who holds several does so in this order
	Hold() error   // waits until nothing is being changed, and lets nothing be changed until Free
	Free()
}

// Mark says whose a parameter, a *nn.Param, is. Who saves or loads one that is marked holds
// the turn. Package nn sets it.
var Mark func(param any, t Turn)
