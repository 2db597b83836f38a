package filetest_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/data"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/nn"
	"github.com/millrace-go/millrace/npy"
	"github.com/millrace-go/millrace/safetensors"
)

// fileReader is one way in which a program reads a file.
type fileReader struct {
	name   string
	read   func(path string) error
	format error    // the error for a file of another format; nil: any error
	own    []string // the formats below that it reads, or takes for text
}

// fileReaders has every function of the module that reads a file.
func fileReaders() []fileReader {
	bytesOf := func(use func([]byte) error) func(string) error {
		return func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := use(b); err != nil {
				return errors.Join(errors.New(path), err)
			}
			return nil
		}
	}
	module := struct{ W *nn.Param }{nn.NewParam(millrace.Zeros(millrace.Float32, 2))}
	return []fileReader{
		{"npy.Load", func(p string) error { _, err := npy.Load(p); return err }, npy.ErrFormat, []string{"npy"}},
		{"npy.Open", func(p string) error { _, err := npy.Open(p); return err }, npy.ErrFormat, []string{"npy"}},
		{"npy.Stat", func(p string) error { _, err := npy.Stat(p); return err }, npy.ErrFormat, []string{"npy"}},
		{"npy.OpenArchive", func(p string) error { _, err := npy.OpenArchive(p); return err }, npy.ErrFormat, []string{"npz"}},
		{"npy.LoadArchive", func(p string) error { _, err := npy.LoadArchive(p); return err }, npy.ErrFormat, []string{"npz"}},
		{"npy.Read", bytesOf(func(b []byte) error { _, err := npy.Read(bytes.NewReader(b)); return err }), npy.ErrFormat, []string{"npy"}},
		{"safetensors.Open", func(p string) error { _, err := safetensors.Open(p); return err }, safetensors.ErrFormat, []string{"safetensors"}},
		{"safetensors.Load", func(p string) error { _, err := safetensors.Load(p); return err }, safetensors.ErrFormat, []string{"safetensors"}},
		{"nn.Load", func(p string) error { return nn.Load(p, &module) }, safetensors.ErrFormat, []string{"safetensors"}},
		{"data.CSV", func(p string) error { _, err := data.CSV(p, data.CSVOptions{}); return err }, data.ErrFormat, []string{"text", "JSON", "bundle", "empty"}},
		{"data.IDX", func(p string) error { _, err := data.IDX(p); return err }, data.ErrFormat, []string{"IDX"}},
		{"data.MNIST", func(p string) error { _, err := data.MNIST(p, p, 10); return err }, data.ErrFormat, []string{"IDX"}},
		{"data.CIFAR10", func(p string) error { _, err := data.CIFAR10(p); return err }, data.ErrFormat, nil},
		{"data.CIFAR100", func(p string) error { _, err := data.CIFAR100(p); return err }, data.ErrFormat, nil},
		{"data.Images", func(p string) error { _, err := data.Images(p, data.ImageOptions{}); return err }, data.ErrFormat, nil},
		{"an image of data.Images", func(p string) error {
			dir := filepath.Join(filepath.Dir(p), "images of "+filepath.Base(p))
			if err := os.MkdirAll(filepath.Join(dir, "class"), 0o777); err != nil {
				return err
			}
			file := filepath.Join(dir, "class", filepath.Base(p)+".png")
			if err := os.Symlink(p, file); err != nil {
				return err
			}
			if _, err := data.Images(dir, data.ImageOptions{}); err != nil {
				return errors.Join(errors.New(p), err)
			}
			return nil
		}, data.ErrFormat, []string{"PNG"}},
		{"data.ReadText", func(p string) error { _, err := data.ReadText(p); return err }, data.ErrFormat,
			[]string{"text", "JSON", "web page", "Git LFS", "empty", "bundle"}},
		{"millrace.UsePlans", bytesOf(millrace.UsePlans), nil, []string{"bundle"}},
	}
}

// otherFiles are files by their names in errors.
func otherFiles(t *testing.T) map[string][]byte {
	zipOf := func(names ...string) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, name := range names {
			f, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			f.Write([]byte("\x80\x02}q\x00."))
		}
		z.Close()
		return b.Bytes()
	}
	var packed, picture, array, weights, npz bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write(bytes.Repeat([]byte("1,2,3\n"), 100))
	w.Close()
	x := millrace.FromSlice([]float32{1, 2, 3})
	for _, err := range []error{
		png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))), npy.Write(&array, x),
		safetensors.Write(&weights, map[string]*millrace.Tensor{"x": x}, nil), npy.WriteArchive(&npz, map[string]*millrace.Tensor{"x": x}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string][]byte{
		"empty":                   nil,
		"zip archive":             zipOf("readme.txt", "a/b.bin"),
		"PyTorch's own format":    zipOf("archive/data.pkl", "archive/version"),
		"PyTorch's old format":    []byte("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."),
		"spreadsheet":             zipOf("[Content_Types].xml", "xl/workbook.xml"),
		"npz":                     npz.Bytes(),
		"npy":                     array.Bytes(),
		"safetensors":             weights.Bytes(),
		"bundle":                  []byte("mrbundle, and no more of one"),
		"gzip":                    packed.Bytes(),
		"bzip2":                   []byte("BZh91AY&SY\x00\xff"),
		"HDF5":                    []byte("\x89HDF\r\n\x1a\n\x00\x00\x00"),
		"GGUF":                    []byte("GGUF\x03\x00\x00\x00\x10\x00"),
		"ONNX":                    []byte("\x08\x08\x12\x07pytorch\x1a\x052.4.0"),
		"pickle":                  []byte("\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]\x94(K\x01K\x02e."),
		"PNG":                     picture.Bytes(),
		"JPEG":                    []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00"),
		"GIF":                     []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00"),
		"web page":                []byte("\n<!DOCTYPE html>\n<html><title>404</title>"),
		"Git LFS":                 []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"),
		"UTF-16":                  []byte("\xff\xfe1\x00,\x002\x00\n\x00"),
		"IDX":                     {0, 0, 8, 1, 0, 0, 0, 9, 1},
		"JSON":                    []byte("{\"a\": [1, 2]}\n"),
		"text":                    []byte("hello, world\nthese are words\n"),
		"zero bytes":              make([]byte, 1000),
		"Parquet":                 []byte("PAR1\x15\x04\x15\x10"),
		"SQLite":                  []byte("SQLite format 3\x00\x10\x00"),
		"MATLAB":                  append([]byte("MATLAB 5.0 MAT-file, Platform: GLNXA64"), make([]byte, 90)...),
		"PDF":                     []byte("%PDF-1.7\n%\xe2\xe3\n"),
		"program":                 []byte("\x7fELF\x02\x01\x01\x00"),
		"WebP":                    []byte("RIFF\x24\x00\x00\x00WEBPVP8 "),
		"tar archive":             append(append(make([]byte, 0, 512), append([]byte("a.txt"), make([]byte, 252)...)...), "ustar\x0000"...),
		"xz":                      []byte("\xfd7zXZ\x00\x00\x04"),
		"zstd":                    []byte("\x28\xb5\x2f\xfd\x04\x58"),
		"Arrow":                   []byte("ARROW1\x00\x00\xff\xff"),
		"7-Zip":                   []byte("7z\xbc\xaf\x27\x1c\x00\x04"),
		"BMP":                     []byte("BM\x36\x00\x00\x00\x00\x00\x00\x00\x36\x00"),
		"TIFF":                    []byte("II*\x00\x08\x00\x00\x00"),
		"HEIC":                    []byte("\x00\x00\x00\x18ftypheic\x00\x00"),
		"Keras model":             zipOf("metadata.json", "config.json"),
		"":                        []byte("\x01\x02\x03 nothing that is known \xff\xff"),
		"half of a PyTorch's own": zipOf("archive/data.pkl", "archive/version")[:60],
	}
}

// TestOtherFormats: a file of another format is an error that names the file and its apparent
// format.
func TestOtherFormats(t *testing.T) {
	dir := t.TempDir()
	for _, r := range fileReaders() {
		for what, content := range otherFiles(t) {
			sub := filepath.Join(dir, r.name)
			if err := os.MkdirAll(sub, 0o777); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(sub, "file "+strings.ReplaceAll(what, "/", " "))
			if err := os.WriteFile(path, content, 0o666); err != nil {
				t.Fatal(err)
			}
			own := false
			for _, k := range r.own {
				own = own || k == what
			}
			var err error
			took := filetest.Allocated(func() { err = r.read(path) })
			switch what := strings.TrimPrefix(what, "half of a "); {
			case took > 1<<20:
				t.Errorf("%s of %q took %d bytes", r.name, what, took)
			case own:
			case err == nil:
				t.Errorf("%s of %q: no error", r.name, what)
			case r.format != nil && !errors.Is(err, r.format), !strings.Contains(err.Error(), path):
				t.Errorf("%s of %q: %v", r.name, what, err)
			case strings.Count(strings.ReplaceAll(err.Error(), path, ""), what) == 0:
				t.Errorf("%s of %q does not say so: %v", r.name, what, err)
			}
		}
	}
}

// TestFolderForFile: a folder in place of a file, and a file in place of a folder, are reported as
// such.
func TestFolderForFile(t *testing.T) {
	for _, r := range fileReaders() {
		if strings.Contains(r.name, "Images") || r.name == "npy.Read" || r.name == "millrace.UsePlans" {
			continue // takes a folder, or bytes
		}
		dir := t.TempDir()
		if err := r.read(dir); err == nil || !strings.Contains(err.Error(), "is a folder") || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}
