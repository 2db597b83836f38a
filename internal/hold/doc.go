// Package hold keeps parameters that change together, such as those of an optimiser, unchanged
// while package nn saves or loads them.
//
// Input: parameters and the [Turn] of their owner. Output: parameters that do not change until
// Free. Read hold.go first.
//
// Engine part: no compatibility promise; use packages nn and optim.
package hold
