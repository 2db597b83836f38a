package calls_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace"
)

// testdata/formats.txt has the output of NumPy: "verb or options, dtype, shape, values", then the
// text. scripts/everyday.py writes it.
func TestFormatAsNumPy(t *testing.T) {
	data, err := os.ReadFile("testdata/formats.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n") // the comment
	n := 0
	for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n====\n") {
		n++
		head, want, _ := strings.Cut(block, "\n----\n")
		f := strings.SplitN(head, " ", 4)
		x := parseTensor(t, f[1], f[2], f[3])
		got := ""
		if strings.HasPrefix(f[0], "%") {
			got = fmt.Sprintf(f[0], x)
		} else {
			got = printOptions(t, f[0]).Sprint(x)
		}
		if got != want {
			t.Errorf("%.60s\ngot:\n%s\nwant:\n%s", head, got, want)
		}
	}
	if n < 20 {
		t.Errorf("only %d cases found", n)
	}
}

func printOptions(t *testing.T, text string) (o millrace.PrintOptions) {
	t.Helper()
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			t.Fatal(err)
		}
		*map[string]*int{"threshold": &o.Threshold, "edge": &o.Edge, "width": &o.Width, "precision": &o.Precision}[name] = n
	}
	return o
}

func TestFormatVerbs(t *testing.T) {
	x := millrace.FromSlice([]float32{1, -2.5}, 2)
	i := millrace.FromSlice([]int32{7, -10}, 2, 1)
	b := millrace.FromSlice([]bool{true, false})
	bad := x.Reshape(3)
	for _, c := range []struct {
		format string
		arg    *millrace.Tensor
		want   string
	}{
		{"%v", x, "[ 1.  -2.5]"}, {"%s", x, "[ 1.  -2.5]"}, {"%+v", x, "float32[2] on cpu\n[ 1.  -2.5]"}, {"%#v", i, "int32[2 1] on cpu\n[[  7]\n [-10]]"},
		{"%.3f", x, "[ 1.000 -2.500]"}, {"%f", x.Slice(millrace.At(1)), "-2.500000"}, {"%.0f", x, "[ 1 -2]"}, {"%.1v", x.DivScalar(3), "[ 0.3 -0.8]"},
		{"%d", x, "%!d(float32[2])"}, {"%.3f", i, "%!f(int32[2 1])"}, {"%q", x, "%!q(float32[2])"}, {"%d", b, "%!d(bool[2])"},
		{"%t", b, "[ true false]"}, {"%v", b, "[ True False]"}, {"%x", i, "[[ 7]\n [-a]]"}, {"%05d", i, "[[00007]\n [-0010]]"}, {"%-6d", i, "[[7     ]\n [-10   ]]"},
		{"%.2f", x.Cast(millrace.Float16), "[ 1.00 -2.50]"}, {"%.2e", x.Cast(millrace.BFloat16), "[ 1.00e+00 -2.50e+00]"},
		{"%.2f", x.Log(), "[0.00  NaN]"}, {"%.2f", millrace.Zeros(millrace.Float32, 0), "[]"}, {"%d", i.Slice(millrace.At(0), millrace.At(0)), "7"},
		{"%v", bad, "<" + bad.Err().Error() + ">"}, {"%.3f", bad, "<" + bad.Err().Error() + ">"}, {"%+v", bad, "<" + bad.Err().Error() + ">"},
	} {
		if got := fmt.Sprintf(c.format, c.arg); got != c.want {
			t.Errorf("%s gives %q, want %q", c.format, got, c.want)
		}
	}
	var none *millrace.Tensor
	for _, format := range []string{"%v", "%.3f", "%+v", "%q"} {
		if got := fmt.Sprintf(format, none); !strings.HasPrefix(got, "<") || !strings.Contains(got, "print_test.go:") {
			t.Errorf("%s of nil gives %q, want the line here", format, got)
		}
	}
	if got := fmt.Sprint(x, i.Sum()); got != "[ 1.  -2.5] -3" {
		t.Errorf("Sprint gives %q", got)
	}
	if got := (millrace.PrintOptions{Edge: 1 << 62, Width: -1}).Sprint(millrace.Arange(millrace.Int32, 0, 2000, 1)); strings.Contains(got, "...") || strings.Contains(got, "\n") {
		t.Errorf("all on one line prints %.60q", got)
	}
}
