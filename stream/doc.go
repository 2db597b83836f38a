// Package stream is the conductor: the only package that sees the whole
// pipeline. It records ops into per-device streams, tracks who may still read
// what, and decides with segment when to run. What is then to be done others do:
// plans finds or makes the plan, exec binds it and runs it, memory has what it is
// bound to.
//
// Engine part: no compatibility promise; use package millrace.
package stream
