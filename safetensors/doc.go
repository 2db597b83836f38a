// Package safetensors loads and saves named tensors in the safetensors format, in which most model
// weights are published.
//
//	f, err := safetensors.Open("model.safetensors")
//	defer f.Close()
//	w, err := f.Tensor("encoder.weight")
//
// Open reads the header only: names, dtypes, shapes and metadata. The elements of a tensor are read
// when the program requests it, straight to the device.
//
// Elements may have every dtype of tensors. A file may also hold other dtypes, such as F8_E4M3:
// they are listed, and reading one is an error that wraps [millrace.ErrDType] and names the dtype
// and the file.
//
// Files may come from untrusted sources. A truncated file or an invalid header (tensors that
// overlap, leave gaps or reach beyond the end, sizes that do not fit the shapes, duplicate names)
// is an error that wraps [ErrFormat]. The memory for a file is proportional to its bytes, whatever
// its header promises.
//
// Saving runs the ops that the tensors need. A file appears complete or not at all: it is written
// beside its place and then renamed. The same tensors give the same bytes as the Python package.
//
// Functions without "On" in their name make tensors on the default device.
//
// Of the source, read file.go first.
package safetensors
