// Package filetest is the common part of the tests of npy and safetensors: the tensors that their
// testdata/make.py wrote, and comparisons with them.
//
// Input: the files of testdata. Output: tensors, and their differences. Read filetest.go first.
//
// Engine part: no compatibility promise; use package millrace.
package filetest
