// Package stream is the conductor: the only package that sees the whole
// pipeline. It records ops into per-device streams, tracks who may still read
// what, decides with segment when to run, has fusion explore what is new, and
// hands bound plans to the device.
//
// Its numbered rules are those of the design: L1 to L6 for lifetimes, Q1 to
// Q5 for plans.
//
// Engine part: no compatibility promise; use package millrace.
package stream
