package npy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/testing/filetest"
	"github.com/millrace-go/millrace/npy"
)

// file makes an .npy file of a header's text and what follows it.
func file(text, elems string) string {
	return "\x93NUMPY\x02\x00" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text + elems
}

func TestHostileHeaders(t *testing.T) {
	good := "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
	if _, err := npy.Read(strings.NewReader(file(good, "12345678"))); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"empty":            "",
		"magic":            "NUMPY\x93\x01\x00",
		"version":          "\x93NUMPY\x09\x00\x00\x00",
		"no length":        "\x93NUMPY\x02\x00\x01",
		"length lies":      "\x93NUMPY\x01\x00\xff\xff" + good,
		"long":             "\x93NUMPY\x03\x00\xff\xff\xff\xff" + good,
		"no text":          file("", ""),
		"not closed":       file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "12345678"),
		"open string":      file("{'descr': '<f4", ""),
		"escape at end":    file(`{'descr': '\`, ""),
		"more":             file(good+"{}", "12345678"),
		"twice":            file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "12345678"),
		"another key":      file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", "12345678"),
		"missing key":      file("{'descr': '<f4', 'shape': (2,)}", "12345678"),
		"no colon":         file("{'descr' '<f4'}", ""),
		"no comma":         file("{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", "12345678"),
		"order a number":   file("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "12345678"),
		"shape a number":   file("{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "12345678"),
		"shape of strings": file("{'descr': '<f4', 'fortran_order': False, 'shape': ('2',)}", "12345678"),
		"negative":         file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "12345678"),
		"range":            file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "12345678"),
		"deep":             file("{'descr': "+strings.Repeat("(", 60000), ""),
		"two orders":       file("{'descr': '<>f4', 'fortran_order': False, 'shape': (2,)}", "12345678"),
		"too few":          file(good, "1234567"),
		"none":             file(good, ""),
	}
	for name, data := range cases {
		for form, r := range map[string]io.Reader{"sized": strings.NewReader(data), "stream": io.MultiReader(strings.NewReader(data))} {
			if x, err := npy.Read(r); x != nil || !errors.Is(err, npy.ErrFormat) {
				t.Errorf("%s, %s: %v, %v", name, form, x, err)
			}
		}
	}
	header := func(order, shape string) string {
		return file("{'descr': '<f4', 'fortran_order': "+order+", 'shape': "+shape+"}", "12345678")
	}
	for data, want := range map[string]string{
		header("False", "(6)"):       "the shape is the number 6, not a tuple: write one dimension as (6,)",
		header("False", "2"):         "the shape is the number 2",
		header("False", "[2]"):       "the shape is a list, not a tuple",
		header("False", "None"):      "the shape is None",
		header("False", "('2',)"):    `dimension 0 of the shape is "2", not a whole number`,
		header("False", "(1, True)"): "dimension 1 of the shape is True",
		header("False", "(1, (2,))"): "dimension 1 of the shape is a tuple",
		header("False", "(1, -2)"):   "dimension 1 of the shape is -2, which is negative",
		header("False", "(2.0,)"):    `".0,)}" is unexpected`,
		header("0", "(2,)"):          "fortran_order is 0, neither True nor False",
		cases["another key"]:         `the key "x" is not one of descr, fortran_order, shape`,
		cases["missing key"]:         "it has no fortran_order",
		cases["open string"]:         `"'<f4" is unexpected`,
		cases["not closed"]:          "it ends early",
	} {
		if _, err := npy.Read(strings.NewReader(data)); !errors.Is(err, npy.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
	for name, shape := range map[string]string{"product": "(4294967296, 4294967296)", "elements": "(4611686018427387904,)"} {
		data := file("{'descr': '<f4', 'fortran_order': False, 'shape': "+shape+"}", "12345678")
		if x, err := npy.Read(strings.NewReader(data)); x != nil || err == nil {
			t.Errorf("%s: %v, %v", name, x, err)
		}
	}
}

// Headers of other programs: spaces, orders, quotes and numbers of other kinds.
func TestOtherHeaders(t *testing.T) {
	for _, text := range []string{
		`{"shape":(2L,),"fortran_order":False,"descr":"<f4"}`,
		"\n{ 'fortran_order' : True , 'shape' : ( 2 , ) , 'descr' : ('<f4') } \n",
		"{'descr': '<f4', 'fortran_order': False, 'shape': (+2,), }\t\n",
	} {
		x, err := npy.Read(strings.NewReader(file(text, "\x00\x00\x80\x3f\x00\x00\x00\x40")))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		filetest.Same(t, text, x, millrace.FromSlice([]float32{1, 2}))
	}
}

// A file that promises 2^50 bytes takes no more memory than it has, from Go or
// from the device.
func TestPromises(t *testing.T) {
	data := file("{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824, 262144)}", strings.Repeat("x", 200_000))
	path := t.TempDir() + "/x.npy"
	if err := os.WriteFile(path, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
	d, err := millrace.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n := filetest.Allocated(func() {
		for form, r := range map[string]io.Reader{"sized": strings.NewReader(data), "stream": io.MultiReader(strings.NewReader(data))} {
			if _, err := npy.ReadOn(d, r); !errors.Is(err, npy.ErrFormat) {
				t.Errorf("%s: %v", form, err)
			}
		}
		if _, err := npy.LoadOn(d, path); !errors.Is(err, npy.ErrFormat) {
			t.Error(err)
		}
	})
	if n > 3<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	if a := d.Stats().Runtime.Allocs; a != 0 {
		t.Errorf("the device allocated %d times", a)
	}
}

// FuzzRead: what can be read can be written, and is then read as it was. A file
// never gives more elements than it has bytes for.
func FuzzRead(f *testing.F) {
	names, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filetest.Path(name.Name()))
		if err != nil {
			f.Fatal(err)
		}
		if strings.HasSuffix(name.Name(), ".npy") {
			f.Add(data)
		}
	}
	f.Add([]byte(file("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 1)}", "12345678")))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := npy.Read(bytes.NewReader(data))
		y, err2 := npy.Read(io.MultiReader(bytes.NewReader(data)))
		if (err == nil) != (err2 == nil) {
			t.Fatalf("sized: %v, as a stream: %v", err, err2)
		}
		if err != nil {
			return
		}
		if n := x.Len() * x.DType().Size(); n > len(data) {
			t.Fatalf("%d bytes of elements in %d", n, len(data))
		}
		filetest.Same(t, "stream", y, x)
		var again bytes.Buffer
		if err := npy.Write(&again, x); err != nil {
			t.Fatal(err)
		}
		if y, err = npy.Read(&again); err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, "again", y, x)
	})
}
