// Package shadertest compares a dialect of codegen/shader with golden texts.
//
// Input: a dialect and a folder of golden files. Output: failed tests, and the texts of the
// shaders. Read golden.go first.
//
// Engine part: no compatibility promise; use package millrace.
package shadertest
