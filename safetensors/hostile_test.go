package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/safetensors"
)

// file makes a file of a header's text and the elements after it.
func file(text, elems string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + text + elems
}

func parse(data string) (*safetensors.File, error) {
	return safetensors.NewFile(strings.NewReader(data), int64(len(data)))
}

// tensor makes an entry of a header.
func tensor(dtype, shape string, begin, end int64) string {
	return fmt.Sprintf(`{"dtype":%q,"shape":[%s],"data_offsets":[%d,%d]}`, dtype, shape, begin, end)
}

func TestHostileHeaders(t *testing.T) {
	f32 := tensor("F32", "2", 0, 8)
	good := []string{
		file(`{"a":`+f32+`}`, "12345678"),
		file(`{"a":`+f32+"} \t\r\n", "12345678"),
		file(`{"b":`+tensor("F32", "2", 8, 16)+`,"a":`+f32+`}`, "1234567812345678"),
		file(`{"a":`+f32+`,"b":`+tensor("F32", "0", 8, 8)+`,"c":`+tensor("F4", "2,2", 8, 10)+`}`, "1234567890"),
		file(`{"a":`+tensor("F32", "4294967295,4294967295,0", 0, 0)+`}`, ""),
		file(`{"a":`+tensor("Q7", "9", 0, 3)+`}`, "123"),
		file(`{"a":{"later":[{"x":[1,null]}],"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, "1"),
	}
	for _, data := range good {
		if _, err := parse(data); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	}
	cases := map[string]string{
		"empty":             "",
		"short":             "\x02\x00\x00",
		"length lies":       "\x09\x00\x00\x00\x00\x00\x00\x00{}",
		"length of 2^64":    "\xff\xff\xff\xff\xff\xff\xff\xff{}",
		"no header":         file("", ""),
		"no brace":          file(" {}", ""),
		"array":             file("[]", ""),
		"not closed":        file(`{"a":`+f32, "12345678"),
		"more":              file(`{"a":`+f32+`}{}`, "12345678"),
		"twice":             file(`{"a":`+f32+`,"a":`+f32+`}`, "12345678"),
		"twice, escaped":    file(`{"a":`+f32+`,"\u0061":`+f32+`}`, "12345678"),
		"dtype twice":       file(`{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, "12345678"),
		"metadata twice":    file(`{"__metadata__":{"x":"1","x":"2"}}`, ""),
		"metadata a number": file(`{"__metadata__":{"x":1}}`, ""),
		"metadata a list":   file(`{"__metadata__":[]}`, ""),
		"tensor a number":   file(`{"a":1}`, ""),
		"no dtype":          file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, "12345678"),
		"no shape":          file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, "1234"),
		"no offsets":        file(`{"a":{"dtype":"F32","shape":[0]}}`, ""),
		"one offset":        file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0]}}`, ""),
		"three offsets":     file(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0,0]}}`, ""),
		"dtype a number":    file(`{"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}}`, "12345678"),
		"shape a string":    file(`{"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}}`, "12345678"),
		"fraction":          file(`{"a":`+tensor("F32", "2.0", 0, 8)+`}`, "12345678"),
		"exponent":          file(`{"a":`+tensor("F32", "2e0", 0, 8)+`}`, "12345678"),
		"negative":          file(`{"a":`+tensor("F32", "-2", 0, 8)+`}`, "12345678"),
		"negative twice":    file(`{"a":`+tensor("F32", "-2,-1", 0, 8)+`}`, "12345678"),
		"range":             file(`{"a":`+tensor("F32", "99999999999999999999", 0, 8)+`}`, "12345678"),
		"product":           file(`{"a":`+tensor("F32", "4294967296,4294967296,2", 0, 8)+`}`, "12345678"),
		"dims":              file(`{"a":`+tensor("F32", strings.Repeat("1,", 100)+"2", 0, 8)+`}`, "12345678"),
		"too few bytes":     file(`{"a":`+tensor("F32", "2", 0, 7)+`}`, "1234567"),
		"half a byte":       file(`{"a":`+tensor("F4", "3", 0, 2)+`}`, "12"),
		"beyond the end":    file(`{"a":`+f32+`}`, "1234567"),
		"not all":           file(`{"a":`+f32+`}`, "123456789"),
		"backwards":         file(`{"a":`+tensor("F32", "2", 8, 0)+`}`, "12345678"),
		"overlap":           file(`{"a":`+f32+`,"b":`+tensor("F32", "2", 4, 12)+`}`, "123456789012"),
		"same place":        file(`{"a":`+f32+`,"b":`+f32+`}`, "12345678"),
		"gap":               file(`{"a":`+f32+`,"b":`+tensor("F32", "1", 12, 16)+`}`, "1234567812345678"),
		"gap in front":      file(`{"a":`+tensor("F32", "1", 4, 8)+`}`, "12345678"),
		"deep":              file(`{"a":`+strings.Repeat("[", 100_000), ""),
		"deep, unknown":     file(`{"a":{"x":`+strings.Repeat(`[`, 100_000), ""),
		"deep, objects":     file(strings.Repeat(`{"a":`, 100_000), ""),
		"no comma":          file(`{"a":`+f32+` "b":`+tensor("U8", "0", 8, 8)+`}`, "12345678"),
		"comma at end":      file(`{"a":`+f32+`,}`, "12345678"),
	}
	for name, data := range cases {
		if f, err := parse(data); f != nil || !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte(cases["gap"]), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := safetensors.Open(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("error %v", err)
	}
}

// TestNineDims: nine dimensions are too many for a tensor, but no error of the file.
func TestNineDims(t *testing.T) {
	f, err := parse(file(`{"a":`+tensor("U8", "1,1,1,1,1,1,1,1,1", 0, 1)+`}`, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tensor("a"); !errors.Is(err, millrace.ErrShape) {
		t.Error(err)
	}
}

// TestShrinkingFile: a file that shrinks while it is open gives an error and no crash.
func TestShrinkingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	data := file(`{"a":`+tensor("U8", "3000000", 0, 3_000_000)+`}`, strings.Repeat("x", 3_000_000))
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 1_500_000); err != nil {
		t.Skip("an open file cannot be cut off here:", err)
	}
	if _, err := f.Tensor("a"); !errors.Is(err, safetensors.ErrFormat) {
		t.Error(err)
	}
}

// TestPromises: the memory for a header is proportional to its length, whatever it promises.
func TestPromises(t *testing.T) {
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&many, `,"%d":%s`, i, tensor("F64", "4611686018427387904", 0, 1<<62))
	}
	bombs := map[string]string{
		"sizes":   file(`{"a":`+tensor("U8", "0", 0, 0)+many.String()+`}`, ""),
		"shape":   file(`{"a":`+tensor("U8", strings.Repeat("0,", 100_000)+"0", 0, 0)+`}`, ""),
		"nesting": file(strings.Repeat("[", 200_000), ""),
		"keys":    file(`{"__metadata__":{`+strings.Repeat(`"a":"",`, 50_000)+`"b":""}}`, ""),
		"length":  "\x00\xe0\xf5\x05\x00\x00\x00\x00{}",
	}
	for name, data := range bombs {
		var err error
		n := filetest.Allocated(func() { _, err = parse(data) })
		if !errors.Is(err, safetensors.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if n > uint64(20*len(data)+1<<16) {
			t.Errorf("%s: %d bytes were allocated for %d", name, n, len(data))
		}
	}
}

// FuzzOpen: a file that can be read can also be written, and reads back the same. A file never
// gives more elements than it has bytes for.
func FuzzOpen(f *testing.F) {
	names, err := filepath.Glob("testdata/*.safetensors")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(file(`{"__metadata__":{"x":"y"},"a":`+tensor("U8", "2,1", 0, 2)+`,"b":`+tensor("F4", "2", 2, 3)+`}`, "123")))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := safetensors.NewFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		all, size := map[string]*millrace.Tensor{}, 0
		for _, name := range file.Names() {
			x, err := file.Tensor(name)
			switch {
			case errors.Is(err, safetensors.ErrFormat):
				t.Fatal(err) // Open has checked it
			case err == nil:
				all[name] = x
				size += x.Len() * x.DType().Size()
			}
		}
		if size > len(data) {
			t.Fatalf("%d bytes of elements in %d", size, len(data))
		}
		var again bytes.Buffer
		if err := safetensors.Write(&again, all, file.Metadata()); err != nil {
			t.Fatal(err)
		}
		g, err := safetensors.NewFile(bytes.NewReader(again.Bytes()), int64(again.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range all {
			y, err := g.Tensor(name)
			if err != nil {
				t.Fatal(err)
			}
			filetest.Same(t, name, y, x)
		}
	})
}
