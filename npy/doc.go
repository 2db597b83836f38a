// Package npy loads and saves tensors as NumPy does: one in an .npy file, or
// several by name in an .npz archive.
//
//	x, err := npy.Load("x.npy")           // numpy.save("x.npy", x)
//	err = npy.Save("y.npy", x.Sqrt())     // numpy.load("y.npy")
//
// [Open] reads a part of a file at a time, and [Create] writes one piece by piece, so that
// arrays larger than memory are worked through:
//
//	f, err := npy.Open("large.npy")
//	defer f.Close()
//	for i := 0; i < f.Len(); i += 4096 {
//		x, err := f.Rows(i, min(4096, f.Len()-i))
//		…
//		x.Release()
//	}
//
// Files of any byte order, C or Fortran order and any version of the format are
// read; those written are, byte for byte, what NumPy 2 writes. Elements may be
// of every dtype that tensors have and NumPy knows: not bfloat16, for which
// there is package safetensors. Complex numbers, strings, dates, records and
// Python objects are not read: the error wraps [millrace.ErrDType] and names
// the dtype and the file. Nothing in a file is ever executed.
//
// Files may come from anywhere. One that is cut off, or that promises more than
// it holds, is an error that wraps [ErrFormat], and no more memory is taken for
// it than it has bytes. (What a compressed archive holds may be larger than the
// archive: [Archive.Stat] tells before it is loaded.)
//
// Saving runs what a tensor needs. A file is there whole or not at all: it is
// written beside its place and then renamed. The same tensors give the same
// bytes.
//
// Functions without "On" in their name make tensors on the default device.
package npy
