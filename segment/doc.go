// Package segment finds known plans: a trie maps the relative form of recorded operations to plans
// (Trie.Step, Trie.Find). It also decides where long queues are cut (Cut), and defines Segment, the
// stretch of operations that a plan covers.
//
// It must not import queue, fusion or any device.
//
// Engine part: no compatibility promise; use package millrace.
package segment
