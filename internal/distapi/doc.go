// Package distapi has calls of package dist that its public API lacks, for the modules and packages
// of this repository.
//
// Input: Worlds and tensors, as any. Output: what each function says. Read call.go first.
//
// Engine part: no compatibility promise; use package dist.
package distapi
