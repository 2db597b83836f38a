// Package segment finds known plans: a trie maps the relative form of recorded operations to plans
// (Trie.Step, Trie.Find). It also decides where long queues are cut (Cut), and defines Segment, the
// stretch of operations that a plan covers.
//
// It must not import queue, fusion or any device.
//
// Input: the keys of a stream's operations, one after another. Output: the known plan that ends at
// each, and the place of the next cut. Read trie.go first.
//
// Engine part: no compatibility promise; use package millrace.
package segment
