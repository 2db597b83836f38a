package ir

import (
	"errors"
	"strings"
	"testing"
)

// evalText runs the lines that follow the inputs and returns the last tensor.
func evalText(t *testing.T, src string, in ...Dense) (Dense, error) {
	t.Helper()
	p := &Graph{}
	var inputs [][]byte
	for _, d := range in {
		p.Inputs = append(p.Inputs, d.TensorType)
		inputs = append(inputs, d.Data)
	}
	q, err := ParseGraph(p.String() + src)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseGraph(q.String()); err != nil || again.String() != q.String() {
		t.Fatalf("%v: read back as\n%v\nfrom\n%v", err, again, q)
	}
	all, err := EvalTensors(q, inputs)
	if err != nil {
		return Dense{}, err
	}
	return all[len(all)-1], nil
}

func TestOracleRowsAndMoves(t *testing.T) {
	x := dense(t, "float32(2,3)", "1 2 3 4 5 6")
	z := dense(t, "int32(2,2)", "4 3 2 1")
	for _, c := range []struct {
		name string
		in   []Dense
		src  string
		want string
	}{
		{"prod", []Dense{x}, "%1 = prod %0 axes=1 : float32(2)", "6 120"},
		{"min keep", []Dense{x}, "%1 = min %0 axes=0 keep : float32(1,3)", "1 2 3"},
		{"any", []Dense{dense(t, "bool(2,2)", "false false true false")}, "%1 = any %0 axes=1 : bool(2)", "false true"},
		{"all of none", []Dense{dense(t, "bool(2,0)", "")}, "%1 = all %0 axes=1 : bool(2)", "true true"},
		{"prod of none", []Dense{dense(t, "float32(0,2)", "")}, "%1 = prod %0 axes=0 : float32(2)", "1 1"},
		{"argmax of all", []Dense{dense(t, "float32(2,3)", "1 9 3 4 9 6")}, "%1 = argmax %0 axes=0,1 : int64()", "1"},
		{"argmin of columns", []Dense{dense(t, "float32(3,2)", "1 nan 0 5 0 4")}, "%1 = argmin %0 axes=0 : int32(2)", "1 0"},
		{"argmax over outer and inner", []Dense{dense(t, "int32(2,2,2)", "1 2 3 4 8 7 6 5")}, "%1 = argmax %0 axes=0,2 : int64(2)", "2 2"},
		{"matrix product", []Dense{x, dense(t, "float32(3,2)", "1 2 3 4 5 6")},
			"%2 = reshape %0 : float32(2,1,3)\n%3 = expand %2 : float32(2,2,3)\n%4 = permute %1 axes=1,0 : float32(2,3)\n" +
				"%5 = expand %4 : float32(2,2,3)\n%6 = dot %3 %5 axes=2 : float32(2,2)", "22 28 49 64"},
		{"dot keep", []Dense{x, x}, "%2 = dot %0 %1 axes=0,1 keep : float32(1,1)", "91"},
		{"dot of none", []Dense{dense(t, "int32(0,2)", "")}, "%1 = dot %0 %0 axes=0 : int32(2)", "0 0"},
		{"cumsum rows", []Dense{x}, "%1 = cumsum %0 axes=1 : float32(2,3)", "1 3 6 4 9 15"},
		{"cumsum columns", []Dense{x}, "%1 = cumsum %0 axes=0 : float32(2,3)", "1 2 3 5 7 9"},
		{"cummax middle", []Dense{dense(t, "int32(2,2,2)", "5 1 3 4 1 2 0 3")}, "%1 = cummax %0 axes=1 : int32(2,2,2)", "5 1 5 4 1 2 1 3"},
		{"cumsum of none", []Dense{dense(t, "float32(0,3)", "")}, "%1 = cumsum %0 axes=0 : float32(0,3)", ""},
		{"sort rows", []Dense{z}, "%1 = sort %0 axes=1 : int32(2,2)", "3 4 1 2"},
		{"sort columns descending", []Dense{dense(t, "int32(2,2)", "1 5 2 3")}, "%1 = sort %0 axes=0 descending : int32(2,2)", "2 5 1 3"},
		{"argsort", []Dense{dense(t, "float32(4)", "2 nan 1 2")}, "%1 = argsort %0 axes=0 : int32(4)", "2 0 3 1"},
		{"window", []Dense{dense(t, "int32(5)", "1 2 3 4 5")}, "%1 = window %0 axes=0 step=2,1 : int32(2,3)", "1 2 3 3 4 5"},
		{"window dilated of columns", []Dense{dense(t, "int32(4,2)", "1 2 3 4 5 6 7 8")}, "%1 = window %0 axes=0 step=1,2 : int32(2,2,2)", "1 2 5 6 3 4 7 8"},
		{"pad", []Dense{z}, "%1 = pad %0 -1 start=1,0 step=1,2 : int32(3,4)", "-1 -1 -1 -1 4 -1 3 -1 2 -1 1 -1"},
		{"pad of none", []Dense{dense(t, "float32(0,1)", "")}, "%1 = pad %0 7 start=1,0 step=1,1 : float32(1,2)", "7 7"},
		{"concat rows", []Dense{z, dense(t, "int32(1,2)", "8 9")}, "%2 = concat %0 %1 axes=0 : int32(3,2)", "4 3 2 1 8 9"},
		{"concat columns", []Dense{z, dense(t, "int32(2,1)", "8 9")}, "%2 = concat %1 %0 axes=1 : int32(2,3)", "8 4 3 9 2 1"},
		{"concat nothing", []Dense{z, dense(t, "int32(2,0)", "")}, "%2 = concat %0 %1 axes=1 : int32(2,2)", "4 3 2 1"},
		{"assign", []Dense{x, dense(t, "float32(1,2)", "8 9")}, "%2 = assign %0 %1 start=1,2 step=1,-2 : float32(2,3)", "1 2 3 9 5 8"},
		{"assign nothing", []Dense{x, dense(t, "float32(2,0)", "")}, "%2 = assign %0 %1 start=0,0 step=1,1 : float32(2,3)", "1 2 3 4 5 6"},
		{"gather along rows", []Dense{x, dense(t, "int64(2,2)", "2 0 1 1")}, "%2 = gather %0 %1 axes=1 : float32(2,2)", "3 1 5 5"},
		{"gather rows", []Dense{x, dense(t, "int32(3,1)", "1 0 1")}, "%2 = gather %0 %1 axes=0 : float32(3,3)", "4 5 6 1 2 3 4 5 6"},
		{"gather of a broadcast", []Dense{dense(t, "int32(2,1)", "7 8"), dense(t, "int32(1,3)", "1 0 1")}, "%2 = gather %0 %1 axes=0 : int32(1,3)", "8 7 8"},
		{"gather clamped", []Dense{x, dense(t, "int32(1,3)", "-5 9 1")}, "%2 = gather %0 %1 axes=1 mode=clamp : float32(2,3)", "1 3 2 4 6 5"},
		{"gather dropped", []Dense{x, dense(t, "int32(1,3)", "-1 2 3")}, "%2 = gather %0 %1 axes=1 mode=drop : float32(2,3)", "0 3 0 0 6 0"},
		{"gather from nothing", []Dense{dense(t, "bool(0)", ""), dense(t, "int32(2)", "0 1")}, "%2 = gather %0 %1 axes=0 mode=drop : bool(2)", "false false"},
		{"gather of nothing", []Dense{dense(t, "bool(0)", ""), dense(t, "int32(0)", "")}, "%2 = gather %0 %1 axes=0 : bool(0)", ""},
		{"the last one set stays", []Dense{z, dense(t, "int32(3,2)", "0 1 0 1 1 1"), dense(t, "int32(3,2)", "10 20 30 40 50 60")},
			"%3 = scatter %0 %1 %2 axes=0 : int32(2,2)", "30 3 50 60"},
		{"scatter add", []Dense{z, dense(t, "int32(2,3)", "0 0 1 1 1 1"), dense(t, "int32(2,3)", "1 2 3 4 5 6")},
			"%3 = scatter %0 %1 %2 axes=1 combine=add : int32(2,2)", "7 6 2 16"},
		// 1 is lost in 2^24 each time: the order is that of the updates.
		{"scatter adds in order", []Dense{dense(t, "float32(1)", "16777216"), dense(t, "int32(3)", "0 0 0"), dense(t, "float32(3)", "1 1 -16777216")},
			"%3 = scatter %0 %1 %2 axes=0 combine=add : float32(1)", "0"},
		{"scatter max", []Dense{dense(t, "float32(2)", "1 -0"), dense(t, "int32(4)", "0 1 0 1"), dense(t, "float32(4)", "-3 0 nan -1")},
			"%3 = scatter %0 %1 %2 axes=0 combine=max : float32(2)", "nan 0"},
		{"scatter min", []Dense{dense(t, "uint8(2)", "200 3"), dense(t, "int64(2)", "0 1"), dense(t, "uint8(2)", "100 9")},
			"%3 = scatter %0 %1 %2 axes=0 combine=min : uint8(2)", "100 3"},
		{"scatter mul", []Dense{dense(t, "int32(2)", "2 3"), dense(t, "int32(3)", "1 1 0"), dense(t, "int32(3)", "5 7 11")},
			"%3 = scatter %0 %1 %2 axes=0 combine=mul : int32(2)", "22 105"},
		{"scatter dropped", []Dense{dense(t, "int32(2)", "2 3"), dense(t, "int32(3)", "-1 2 0"), dense(t, "int32(3)", "5 7 11")},
			"%3 = scatter %0 %1 %2 axes=0 mode=drop : int32(2)", "11 3"},
		{"scatter clamped", []Dense{dense(t, "int32(2)", "2 3"), dense(t, "int32(3)", "-1 2 0"), dense(t, "int32(3)", "5 7 11")},
			"%3 = scatter %0 %1 %2 axes=0 mode=clamp combine=add : int32(2)", "18 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := evalText(t, c.src, c.in...)
			if err != nil {
				t.Fatal(err)
			}
			if text := literals(got); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

func TestIndexFault(t *testing.T) {
	x := dense(t, "float32(2,3)", "1 2 3 4 5 6")
	for _, c := range []struct {
		name string
		in   []Dense
		src  string
		want IndexFault
	}{
		{"gather", []Dense{x, dense(t, "int32(1,3)", "0 3 -1")}, "%2 = gather %0 %1 axes=1 : float32(2,3)",
			IndexFault{Op: Gather, Index: 3, At: 1, Axis: 1, Size: 3}},
		{"negative", []Dense{x, dense(t, "int64(2,1)", "0 -1")}, "%2 = gather %0 %1 axes=0 : float32(2,3)",
			IndexFault{Op: Gather, Index: -1, At: 1, Axis: 0, Size: 2}},
		{"scatter", []Dense{x, dense(t, "int32(2,3)", "0 1 0 0 0 2"), x}, "%3 = scatter %0 %1 %2 axes=0 combine=add : float32(2,3)",
			IndexFault{Op: Scatter, Index: 2, At: 5, Axis: 0, Size: 2}},
		{"nothing to point at", []Dense{dense(t, "bool(0)", ""), dense(t, "int32(1)", "0")}, "%2 = gather %0 %1 axes=0 : bool(1)",
			IndexFault{Op: Gather, Index: 0, At: 0, Axis: 0, Size: 0}},
	} {
		_, err := evalText(t, c.src, c.in...)
		var f *IndexFault
		if !errors.As(err, &f) || !errors.Is(err, ErrIndex) || *f != c.want {
			t.Errorf("%s: error %v, want %v", c.name, err, &c.want)
		}
	}
	f := IndexFault{Op: Gather, Index: 7, At: 3, Axis: 1, Size: 5}
	if got, want := f.Error(), "index out of range: gather: index 7 at position 3, but axis 1 has 5 elements"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParseAttrErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"%1 = sum %0 axes=1 descending : float32(2)", `sum has no "descending"`},
		{"%1 = sort %0 axes=1 descending=1 : float32(2,3)", `sort has no "descending=1"`},
		{"%1 = sort %0 axes=1 keep : float32(2,3)", `sort has no "keep"`},
		{"%1 = cumsum %0 axes= : float32(2,3)", "takes one axis"},
		{"%1 = argsort %0 axes=1 : float32(2,3)", "not float32"},
		{"%1 = pad %0 1 axes=1 : float32(2,3)", `pad has no "axes=1"`},
		{"%1 = pad %0 start=0,0 step=1,1 : float32(2,3)", "1 operands, want 2"},
		{"%1 = pad %0 true start=0,0 step=1,1 : float32(2,3)", "is not a value of float32"},
		{"%1 = gather %0 %0 axes=1 mode=wrap : float32(2,3)", `"wrap" is not one of error, clamp, drop`},
		{"%1 = scatter %0 %0 %0 axes=1 combine=xor : float32(2,3)", `"xor" is not one of set, add, max, min, mul`},
		{"%1 = loadat %0 : float32(2,3)", "not an op on tensors"},
	} {
		_, err := ParseGraph("%0 = input : float32(2,3)\n" + c.src)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.src, err, c.want)
		}
	}
}
