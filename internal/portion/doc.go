// Package portion divides rows among ranks and parts, in the one way that data loaders and training
// steps of several ranks share.
//
// Input: numbers of rows and of parts. Output: the rows of a part. Read portion.go first.
//
// Engine part: no compatibility promise; use packages data and optim.
package portion
