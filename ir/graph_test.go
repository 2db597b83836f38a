package ir

import (
	"strings"
	"testing"
)

const sample = `%0 = input : float32(2,3)
%1 = input : bool(3)
%2 = mul %0 0.5 : float32(2,3)
%3 = sum %2 axes=1 keep : float32(2,1)
%4 = slice %2 start=1,0 step=-1,2 : float32(2,2)
release %0
%5 = where %1 %3 -0 : float32(2,3)
%6 = iota 3 -1 : int32(4)
%7 = uniform 18446744073709551615 : float64()
%8 = permute %4 axes=1,0 : float32(2,2)
%9 = reshape %8 : float32(4)
%10 = expand %9 : float32(2,4)
%11 = lt %10 inf : bool(2,4)
%12 = cast %11 : uint8(2,4)
keep %12
%13 = max %7 axes= : float64()
output %5 %6 %12 %13
`

func TestProgramText(t *testing.T) {
	p, err := ParseGraph(sample)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.String(); got != sample {
		t.Errorf("printed as\n%s", got)
	}
	if got := p.Types()[12].String(); got != "uint8(2,4)" {
		t.Errorf("%%12 is %s", got)
	}
}

func TestParseGraphErrors(t *testing.T) {
	const in = "%0 = input : float32(2,3)\n"
	for _, c := range []struct{ src, want string }{
		{"%1 = input : float32(2)", "line 1: tensor %1, want %0"},
		{"%0 = input : uint33(2)", "is not a tensor type"},
		{"%0 = input : float32(2", "is not a tensor type"},
		{"%0 = input : float32(-1)", "negative"},
		{in + "%1 = add %0 %2 : float32(2,3)", "%2 is not made yet"},
		{in + "%1 = frob %0 : float32(2,3)", `"frob" is not an op`},
		{in + "%1 = fma %0 %0 %0 : float32(2,3)", "not an op on tensors"},
		{in + "%1 = neg %0 : float32(3,2)", "result is float32(2,3), not float32(3,2)"},
		{in + "%1 = neg %0 : int32(2,3)", "result is float32"},
		{in + "%1 = add %0 : float32(2,3)", "1 operands, want 2"},
		{in + "%1 = add %0 1e99 : float32(2,3)", `"1e99" is not a value of float32`},
		{in + "%1 = add %0 true : float32(2,3)", "is not a value of float32"},
		{in + "release %0\n%1 = neg %0 : float32(2,3)", "%0 is released"},
		{in + "release %0\noutput %0", "%0 is released"},
		{in + "%1 = sum %0 axes=5 : float32(2,3)", "bad axes"},
		{in + "%1 = neg %0 axes=0 : float32(2,3)", `neg has no "axes=0"`},
		{in + "%1 = full %0 : float32(2,3)", "takes scalars only"},
		{in + "%1 = reshape 1 : float32(2,3)", "is not a value of invalid"},
		{in + "%1 = neg %0 : float32(2,3)\n%2 = input : bool()", "inputs come first"},
		{in + "output %0 %1", "not made yet"},
	} {
		_, err := ParseGraph(c.src)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.src, err, c.want)
		}
	}
}

// FuzzParseGraph checks that any text is refused, or read as a graph that prints the same text.
func FuzzParseGraph(f *testing.F) {
	f.Add(sample)
	f.Add("%0 = full nan:0x7fc00001 : float32(0,1)\nkeep %0\n")
	f.Add("%0 = input : float32(3,4)\n%1 = input : int32(3,4)\n%2 = dot %0 %0 axes=0,1 keep : float32(1,1)\n%3 = argsort %0 axes=1 descending : int64(3,4)\n" +
		"%4 = window %0 axes=1 step=1,2 : float32(3,2,2)\n%5 = pad %0 nan start=1,0 step=2,1 : float32(7,4)\n%6 = assign %5 %0 start=2,0 step=1,1 : float32(7,4)\n" +
		"%7 = gather %0 %1 axes=1 mode=drop : float32(3,4)\n%8 = scatter %0 %1 %7 axes=0 mode=clamp combine=mul : float32(3,4)\n%9 = concat %8 %8 axes=0 : float32(6,4)\noutput %9\n")
	f.Add("%0 = input : int64()\n%1 = clamp %0 -9223372036854775808 5 : int64()\n")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := ParseGraph(src)
		if err != nil {
			return
		}
		text := p.String()
		q, err := ParseGraph(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again := q.String(); again != text {
			t.Fatalf("printed as\n%s\nthen as\n%s", text, again)
		}
	})
}
