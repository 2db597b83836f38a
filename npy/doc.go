// Package npy loads and saves tensors as NumPy does: one in an .npy file, or
// several by name in an .npz archive.
//
//	x, err := npy.Load("x.npy")           // numpy.save("x.npy", x)
//	err = npy.Save("y.npy", x.Sqrt())     // numpy.load("y.npy")
//
// [Open] reads a file in parts, and [Create] writes one in parts. A program can therefore work
// through arrays that are larger than memory:
//
//	f, err := npy.Open("large.npy")
//	defer f.Close()
//	for i := 0; i < f.Len(); i += 4096 {
//		x, err := f.Rows(i, min(4096, f.Len()-i))
//		…
//		x.Release()
//	}
//
// The package reads files of any byte order, in C or Fortran order, and of every version of the
// format. It writes the bytes that NumPy 2 writes. Elements may have every dtype that both tensors
// and NumPy have. NumPy has no bfloat16; use package safetensors for it. Complex numbers, strings,
// dates, records and Python objects are not read: the error wraps [millrace.ErrDType] and names the
// dtype and the file. Nothing in a file is ever executed.
//
// Files may come from untrusted sources. A file that is cut off, or that promises more than it
// holds, is an error that wraps [ErrFormat]. A file takes no more memory than it has bytes. A
// compressed array may be larger than its archive: [Archive.Stat] tells its size before it is
// loaded.
//
// Saving computes the tensors. A file appears complete or not at all: it is written under another
// name and then renamed. The same tensors give the same bytes.
//
// Functions without "On" in their name make tensors on the default device.
//
// Of the source, read load.go first.
package npy
