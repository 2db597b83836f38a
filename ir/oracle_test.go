package ir

import (
	"math"
	"strings"
	"testing"
)

// dense makes a tensor from literals.
func dense(t *testing.T, typ string, literals string) Dense {
	t.Helper()
	tt, err := parseType(typ)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDense(tt)
	words := strings.Fields(literals)
	if len(words) != tt.Shape.Elems() {
		t.Fatalf("%d elements for %s", len(words), typ)
	}
	for i, w := range words {
		bits, err := ParseBits(tt.DT, w)
		if err != nil {
			t.Fatal(err)
		}
		d.Set(i, bits)
	}
	return d
}

func literals(d Dense) string {
	var words []string
	for i := range d.Shape.Elems() {
		bits := d.At(i)
		if d.DT.IsFloat() && isNaNBits(d.DT, bits) {
			bits = quietNaN(d.DT)
		}
		words = append(words, FormatBits(d.DT, bits))
	}
	return strings.Join(words, " ")
}

func TestOracle(t *testing.T) {
	x := dense(t, "float32(2,3)", "1 2 3 4 5 6")
	for _, c := range []struct {
		name string
		in   []Dense
		src  string // after the inputs; the last tensor is read
		want string
	}{
		{"row broadcast", []Dense{x, dense(t, "float32(3)", "10 20 30")}, "%2 = add %0 %1 : float32(2,3)", "11 22 33 14 25 36"},
		{"column broadcast", []Dense{x, dense(t, "float32(2,1)", "10 20")}, "%2 = sub %0 %1 : float32(2,3)", "-9 -8 -7 -16 -15 -14"},
		{"scalar on the left", []Dense{x}, "%1 = sub 10 %0 : float32(2,3)", "9 8 7 6 5 4"},
		{"where", []Dense{dense(t, "bool(2)", "true false"), dense(t, "int32(2,1)", "1 2")}, "%2 = where %0 %1 -7 : int32(2,2)", "1 -7 2 -7"},
		{"compare", []Dense{x}, "%1 = ge %0 4 : bool(2,3)", "false false false true true true"},
		{"full", nil, "%0 = full -0 : float64(2)", "-0 -0"},
		{"reshape", []Dense{x}, "%1 = reshape %0 : float32(3,2)", "1 2 3 4 5 6"},
		{"permute", []Dense{x}, "%1 = permute %0 axes=1,0 : float32(3,2)", "1 4 2 5 3 6"},
		{"slice back", []Dense{x}, "%1 = slice %0 start=1,2 step=-1,-2 : float32(2,2)", "6 4 3 1"},
		{"expand", []Dense{dense(t, "uint8(2,1)", "3 4")}, "%1 = expand %0 : uint8(2,2,2)", "3 3 4 4 3 3 4 4"},
		{"sum rows", []Dense{x}, "%1 = sum %0 axes=1 : float32(2)", "6 15"},
		{"sum columns", []Dense{x}, "%1 = sum %0 axes=0 keep : float32(1,3)", "5 7 9"},
		{"sum all", []Dense{x}, "%1 = sum %0 axes=0,1 : float32()", "21"},
		{"sum middle", []Dense{dense(t, "int32(2,2,2)", "1 2 3 4 5 6 7 8")}, "%1 = sum %0 axes=1 : int32(2,2)", "4 6 12 14"},
		{"max", []Dense{dense(t, "float32(2,2)", "1 nan -inf -5")}, "%1 = max %0 axes=1 : float32(2)", "nan -5"},
		{"sum of nothing", []Dense{dense(t, "float32(0,2)", "")}, "%1 = sum %0 axes=0 : float32(2)", "0 0"},
		{"empty", []Dense{dense(t, "float32(0,2)", "")}, "%1 = neg %0 : float32(0,2)", ""},
		{"rank 0", []Dense{dense(t, "float32()", "4")}, "%1 = sqrt %0 : float32()", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Graph{}
			var inputs [][]byte
			for _, d := range c.in {
				p.Inputs = append(p.Inputs, d.TensorType)
				inputs = append(inputs, d.Data)
			}
			q, err := ParseGraph(p.String() + c.src)
			if err != nil {
				t.Fatal(err)
			}
			all, err := EvalTensors(q, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if got := literals(all[len(all)-1]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOracleFaults(t *testing.T) {
	p, err := ParseGraph("%0 = input : float32(2)\noutput %0\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EvalGraph(p, nil); err == nil {
		t.Error("no error for missing inputs")
	}
	if _, err := EvalGraph(p, [][]byte{make([]byte, 7)}); err == nil {
		t.Error("no error for a short input")
	}
}

func TestOracleSumInBlocks(t *testing.T) {
	const n = 10000
	x := NewDense(TensorType{Float32, Shape{2, n}})
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(math.Sin(float64(i)))
		x.Set(i, uint64(math.Float32bits(xs[i])))
	}
	p, err := ParseGraph("%0 = input : float32(2,10000)\n%1 = sum %0 axes=1 : float32(2)\noutput %1")
	if err != nil {
		t.Fatal(err)
	}
	out, err := EvalGraph(p, [][]byte{x.Data})
	if err != nil {
		t.Fatal(err)
	}
	d := Dense{TensorType{Float32, Shape{2}}, out[0]}
	if got, want := uint32(d.At(0)), math.Float32bits(foldSum32(xs)); got != want {
		t.Errorf("got %#x, want %#x", got, want)
	}
}
