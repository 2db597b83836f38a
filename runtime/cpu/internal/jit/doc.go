// Package jit makes functions of codegen/native callable.
//
// Input: a native.Func. Output: a Code in executable memory, which the caller calls with a frame of
// words. Read jit.go first.
//
// A function may be optional: the system can refuse memory for it. Then slower code runs, and the
// refusal is counted.
//
// Engine part: no compatibility promise; use package millrace.
package jit
