// Package stream coordinates the engine and is the only package that uses the whole pipeline. It
// records ops into the streams of a device, counts the readers of each value, and decides with
// package segment when to run a segment. Other packages do the rest: planstore finds or makes
// the plan, exec binds the plan to memory and runs it, and memory provides that memory.
//
// Input: ops on values. Output: values in memory, or errors that name their op. Read flush.go first.
//
// Engine part: no compatibility promise; use package millrace.
package stream
