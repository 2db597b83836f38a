// Package segment decides what a stream does next: it walks the relative form
// of recorded ops down a trie of known plans and answers Defer, Execute or
// Explore. It also defines Segment, the stretch of ops that a plan covers.
//
// It must not import queue, fusion or any device.
//
// Engine part: no compatibility promise; use package millrace.
package segment
