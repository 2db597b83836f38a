package sniff

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is a file format that is recognisable by a file's first bytes.
type Kind string

// The formats that readers of this module accept: see [Explain].
const (
	Npy         Kind = "npy"
	Npz         Kind = "npz"
	Safetensors Kind = "safetensors"
	IDX         Kind = "idx"
	Gzip        Kind = "gzip"
	Bundle      Kind = "bundle"
	PNG         Kind = "png"
	JPEG        Kind = "jpeg"
	JSON        Kind = "json"
	HTML        Kind = "html"
	LFS         Kind = "lfs"
	Zeros       Kind = "zeros"
	Text        Kind = "text"

	empty Kind = "empty"
)

// row is a format: how its files begin, and the text for a reader that got such a file instead of
// the expected one.
type row struct {
	kind Kind
	is   func(head []byte) bool
	what string // completes "it seems to be"
	do   string // advice; may be empty
}

const convert = "in Python, safetensors.torch.save_file(model.state_dict(), path) writes a file for nn.Load"

// rows are tried from the first to the last: a special kind comes before the general one.
var rows = []row{
	{empty, func(h []byte) bool { return len(h) == 0 }, "", ""},
	{"pytorch", zipWith("/data.pkl", "/version", "/byteorder", "archive/", ".data/serialization_id"), "a file of PyTorch's own format (torch.save writes a zip of pickles)", convert},
	{"pytorch", begins("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."), "a file of PyTorch's old format (torch.save)", convert},
	{Npz, zipWith(".npy"), "an .npz archive", "npy.LoadArchive reads it"},
	{"keras", zipWith("metadata.json", "config.json", "model.weights.h5"), "a Keras model (a zip archive)", "save its weights as .npz with numpy.savez for npy.LoadArchive"},
	{"office", zipWith("[Content_Types].xml", "_rels/", "xl/", "mimetype"), "a spreadsheet or office document", "export it as CSV for data.CSV"},
	{"zip", begins("PK\x03\x04", "PK\x05\x06", "PK\x07\x08"), "a zip archive", "unpack it"},
	{Npy, begins("\x93NUMPY"), "an .npy file", "npy.Load reads it"},
	{Safetensors, isSafetensors, "a safetensors file", "nn.Load and safetensors.Open read it"},
	{Bundle, begins("mrbundle"), "a bundle of plans", "millrace.UsePlans takes it"},
	{Gzip, begins("\x1f\x8b"), "a file compressed by gzip", "unpack it with gunzip (or tar -xzf)"},
	{"bzip2", begins("BZh"), "a file compressed by bzip2", "unpack it with bunzip2"},
	{"xz", begins("\xfd7zXZ\x00"), "a file compressed by xz", "unpack it with unxz"},
	{"zstd", begins("\x28\xb5\x2f\xfd"), "a file compressed by zstd", "unpack it with unzstd"},
	{"7z", begins("7z\xbc\xaf\x27\x1c"), "a 7-Zip archive", "unpack it"},
	{"tar", at(257, "ustar"), "a tar archive", "unpack it with tar -xf"},
	{"hdf5", begins("\x89HDF\r\n\x1a\n"), "an HDF5 file", "h5py reads it in Python, numpy.savez writes an archive for npy.LoadArchive"},
	{"matlab", begins("MATLAB 5.0 MAT-file", "MATLAB 7.3 MAT-file"), "a MATLAB file", "scipy.io.loadmat reads it in Python, numpy.savez writes an archive for npy.LoadArchive"},
	{"gguf", begins("GGUF", "ggjt", "tjgg"), "a GGUF model", "its publisher may offer the same weights as safetensors"},
	{"onnx", isONNX, "an ONNX model", "package onnx runs it; nn.Load reads safetensors"},
	{"parquet", begins("PAR1"), "a Parquet table", "export it as CSV for data.CSV"},
	{"arrow", begins("ARROW1\x00\x00"), "an Arrow table", "export it as CSV for data.CSV"},
	{"sqlite", begins("SQLite format 3\x00"), "an SQLite database", "export it as CSV for data.CSV"},
	{"pickle", isPickle, "a Python pickle", convert},
	{PNG, begins("\x89PNG\r\n\x1a\n"), "a PNG image", "data.Images reads folders of images"},
	{JPEG, begins("\xff\xd8\xff"), "a JPEG image", "data.Images reads folders of images"},
	{"gif", begins("GIF87a", "GIF89a"), "a GIF image", "convert it to PNG or JPEG"},
	{"webp", isWebP, "a WebP image", "convert it to PNG or JPEG"},
	{"heic", at(4, "ftyphe", "ftypmif", "ftypavif"), "a HEIC or AVIF image", "convert it to PNG or JPEG"},
	{"tiff", begins("II*\x00", "MM\x00*"), "a TIFF image", "convert it to PNG or JPEG"},
	{"bmp", isBMP, "a BMP image", "convert it to PNG or JPEG"},
	{"pdf", begins("%PDF-"), "a PDF document", ""},
	{"program", begins("\x7fELF", "MZ\x90\x00", "\xcf\xfa\xed\xfe"), "a program", ""},
	{"utf16", begins("\xff\xfe", "\xfe\xff"), "text in UTF-16", "save it as UTF-8"},
	{LFS, begins("version https://git-lfs.github.com/spec"), "a Git LFS pointer in place of the file", "git lfs pull fetches the file"},
	{HTML, isHTML, "a web page", "the download went wrong, or was of the page about the file"},
	{IDX, isIDX, "an IDX file", "data.IDX reads it"},
	{Zeros, isZeros, "zero bytes only", "the file was not written or downloaded to its end"},
	{JSON, isJSON, "JSON", ""},
	{"pem", begins("-----BEGIN "), "a key or certificate", ""},
	{Text, isText, "text", "data.CSV reads tables, data.ReadText reads text"},
}

// begins recognises files by their first bytes.
func begins(magic ...string) func([]byte) bool { return at(0, magic...) }

func at(pos int, magic ...string) func([]byte) bool {
	return func(h []byte) bool {
		return slices.ContainsFunc(magic, func(m string) bool { return len(h) >= pos+len(m) && string(h[pos:pos+len(m)]) == m })
	}
}

// zipWith recognises zip archives by the name of their first file.
func zipWith(parts ...string) func([]byte) bool {
	const fixed = 30 // bytes of a local header before the name
	return func(h []byte) bool {
		if len(h) < fixed || string(h[:4]) != "PK\x03\x04" {
			return false
		}
		n := int(binary.LittleEndian.Uint16(h[26:]))
		name := string(h[fixed:min(len(h), fixed+n)])
		return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(name, p) || strings.HasSuffix(name, p) })
	}
}

// isSafetensors: the length of a header below the format's limit, then its JSON.
func isSafetensors(h []byte) bool {
	return len(h) > 8 && binary.LittleEndian.Uint64(h) <= 100_000_000 && h[8] == '{'
}

// isONNX: field 1 (the version of the format) and then field 2 (the producer) of a protocol buffer,
// or the graph.
func isONNX(h []byte) bool {
	if len(h) < 6 || h[0] != 0x08 || h[1] == 0 || h[1] > 20 {
		return false
	}
	return h[2] == 0x12 && int(h[3]) > 0 && len(h) >= 4+int(h[3]) && isPrintable(h[4:4+int(h[3])]) || h[2] == 0x3a
}

// isPickle: the opcode of protocols 2 to 5.
func isPickle(h []byte) bool { return len(h) > 2 && h[0] == 0x80 && h[1] >= 2 && h[1] <= 5 }

func isWebP(h []byte) bool { return begins("RIFF")(h) && at(8, "WEBP")(h) }

func isBMP(h []byte) bool {
	return len(h) > 10 && string(h[:2]) == "BM" && string(h[6:10]) == "\x00\x00\x00\x00"
}

func isIDX(h []byte) bool {
	return len(h) >= 8 && h[0] == 0 && h[1] == 0 && h[2] >= 8 && h[2] <= 0x0e && h[3] >= 1 && h[3] <= 8
}

func isZeros(h []byte) bool { return len(bytes.Trim(h, "\x00")) == 0 }

func isHTML(h []byte) bool {
	h = bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(h, []byte("\ufeff")), " \t\r\n"))
	if begins("<?xml")(h) && bytes.Contains(h, []byte("<html")) {
		return true
	}
	return begins("<!doctype html", "<html", "<head>", "<body", "<script")(h)
}

func isJSON(h []byte) bool {
	h = bytes.TrimLeft(h, " \t\r\n")
	return len(h) > 0 && (h[0] == '{' || h[0] == '[') && isText(h)
}

// isText: UTF-8 without control characters, except for a truncated character at the end.
func isText(h []byte) bool {
	for i := 0; i < len(h); {
		r, n := utf8.DecodeRune(h[i:])
		if r == utf8.RuneError && n == 1 {
			return len(h) == Len && len(h)-i < utf8.UTFMax
		}
		if r < ' ' && !strings.ContainsRune("\t\r\n\f", r) {
			return false
		}
		i += n
	}
	return true
}

func isPrintable(h []byte) bool {
	return !slices.ContainsFunc(h, func(c byte) bool { return c < ' ' || c > '~' })
}
