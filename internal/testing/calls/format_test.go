package calls_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// testdata/numpy.txt has the output of NumPy 2: "dtype shape values", where values may be
// "arange", then the text.
func TestStringAsNumPy(t *testing.T) {
	data, err := os.ReadFile("testdata/numpy.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n") // the comment
	n := 0
	for block := range strings.SplitSeq(text, "\n====\n") {
		if strings.TrimSpace(block) == "" {
			continue
		}
		n++
		head, want, _ := strings.Cut(block, "\n----\n")
		f := strings.SplitN(head, " ", 3)
		if got := parseTensor(t, f[0], f[1], f[2]).String(); got != want {
			t.Errorf("%.60s\ngot:\n%s\nwant:\n%s", head, got, want)
		}
	}
	if n < 60 {
		t.Errorf("only %d cases found", n)
	}
}

func parseTensor(t *testing.T, dtype, dims, values string) *millrace.Tensor {
	t.Helper()
	shape, n := []int{}, 1
	if dims != "-" {
		for d := range strings.SplitSeq(dims, ",") {
			i, err := strconv.Atoi(d)
			if err != nil {
				t.Fatal(err)
			}
			shape, n = append(shape, i), n*i
		}
	}
	fields := strings.Fields(values)
	if values == "arange" {
		fields = nil
		for i := range n {
			fields = append(fields, strconv.Itoa(i))
		}
	}
	switch dtype {
	case "float32":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (float32, error) {
			v, err := strconv.ParseFloat(s, 32)
			return float32(v), err
		}), shape...)
	case "float64":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }), shape...)
	case "int32":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (int32, error) {
			v, err := strconv.ParseInt(s, 10, 32)
			return int32(v), err
		}), shape...)
	case "int64":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }), shape...)
	case "uint8":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (uint8, error) {
			v, err := strconv.ParseUint(s, 10, 32)
			return uint8(v), err
		}), shape...)
	case "bool":
		return millrace.FromSlice(parseAll(t, fields, func(s string) (bool, error) { return s != "0", nil }), shape...)
	}
	t.Fatalf("dtype %q", dtype)
	return nil
}

func parseAll[T millrace.Element](t *testing.T, fields []string, parse func(string) (T, error)) []T {
	t.Helper()
	vs := make([]T, len(fields))
	for i, f := range fields {
		v, err := parse(f)
		if err != nil {
			t.Fatal(err)
		}
		vs[i] = v
	}
	return vs
}
