// Package everyday compares the operations that users of NumPy, SciPy and PyTorch expect with those
// libraries' results. testdata/numpy.json has the numbers; scripts/everyday.py writes it.
//
// Input: cases of testdata. Output: failed tests. Read case_test.go first.
//
// Engine part: no compatibility promise; use package millrace.
package everyday
