// Package testhook makes the engine do things that it rarely does, for tests: run every kernel by
// another choice than the default, and run out of room for plans. Nothing is forced outside tests.
//
// Input: what a test forces. Output: what the engine asks for: a choice, a number of plans, steps
// or pieces. Read force.go first.
//
// Engine part: no compatibility promise; use package millrace.
package testhook
