// Package safetensors loads and saves tensors by name in the safetensors
// format, in which most model weights are published.
//
//	f, err := safetensors.Open("model.safetensors")
//	defer f.Close()
//	w, err := f.Tensor("encoder.weight")
//
// Open reads the header only: names, dtypes, shapes and metadata. The elements
// of a tensor are read when it is asked for, straight to the device.
//
// Elements may be of every dtype that tensors have. A file may also hold
// others, such as F8_E4M3: they are listed, and asking for one is an error that
// wraps [millrace.ErrDType] and names the dtype and the file.
//
// Files may come from anywhere. One that is cut off, or whose header is not
// what the format asks for (tensors that overlap, leave gaps or reach beyond
// the end, sizes that do not fit the shapes, names that are there twice), is an
// error that wraps [ErrFormat], and the memory taken for it is in proportion to
// its bytes, whatever it promises.
//
// Saving runs what the tensors need. A file is there whole or not at all: it is
// written beside its place and then renamed. The same tensors give the same
// bytes, those that the Python package writes.
//
// Functions without "On" in their name make tensors on the default device.
package safetensors
