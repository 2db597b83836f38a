package shader

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/ir"
)

// TestHalves finds the 16-bit floats of products: behind ops, behind casts to float32, and after a
// second preparation, as parts of a launch have it.
func TestHalves(t *testing.T) {
	const head = "in 0 : T\nin 1 : T\nout 2 : R row\n%0 = load 0 : T\n%1 = load 1 : T\n"
	for _, c := range []struct {
		body, dt, result string
		want             ir.DType
	}{
		{"%2 = dot %0 %1 : T", "float16", "float16", ir.Float16},
		{"%2 = dot %0 %1 : T", "bfloat16", "bfloat16", ir.BFloat16},
		{"%2 = dot %0 %0 : T", "float16", "float16", ir.Float16},
		{"%2 = neg %1 : T\n%3 = dot %0 %2 : T", "float16", "float16", ir.Float16},
		{"%2 = mul %1 %1 : T\n%3 = gelu %2 : T\n%4 = dot %3 %2 : T", "bfloat16", "bfloat16", ir.BFloat16},
		{"%2 = add %1 %1 : T\n%3 = dot %2 %1 : T\n%4 = exp %3 : T", "float16", "float16", ir.Float16},
		{"%2 = cast %0 : float32\n%3 = cast %1 : float32\n%4 = dot %2 %3 : float32", "bfloat16", "float32", ir.BFloat16},
		{"%2 = cast %0 : float16\n%3 = cast %1 : float16\n%4 = dot %2 %3 : float16", "float32", "float16", ir.Float16},
		{"%2 = cast %0 : bfloat16\n%3 = cast %2 : float32\n%4 = dot %3 %3 : float32", "float32", "float32", ir.BFloat16},
		{"%2 = cast %0 : float32\n%3 = exp %2 : float32\n%4 = dot %3 %2 : float32", "float16", "float32", ir.Invalid},
		{"%2 = cast %0 : bfloat16\n%3 = cast %2 : float32\n%4 = cast %0 : float32\n%5 = dot %3 %4 : float32", "float16", "float32", ir.Invalid},
		{"%2 = dot %0 %1 : T", "float32", "float32", ir.Invalid},
		{"%2 = dot %0 %1 : T", "uint16", "uint16", ir.Invalid},
		{"%2 = dot %0 %1 : T", "int32", "int32", ir.Invalid},
		{"%2 = mul %0 %1 : T\n%3 = sum %2 : T", "float16", "float16", ir.Invalid},
	} {
		text := strings.NewReplacer("T", c.dt, "R", c.result).Replace(head + c.body)
		last := text[strings.LastIndex(text, "\n")+1:]
		last, _, _ = strings.Cut(last, " ")
		k, err := codegen.Parse(text + "\nstore 2 " + last)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		for range 2 {
			if k, err = Prepare(k); err != nil {
				t.Fatalf("%v of\n%s", err, text)
			}
			of, sides := Halves(k)
			if of != c.want {
				t.Errorf("halves of %v, want %v, in\n%s", of, c.want, text)
			}
			for _, v := range sides {
				if of != ir.Invalid && k.Body[v].DT.Size() != 2 {
					t.Errorf("%%%d has no halves in\n%s", v, k)
				}
			}
		}
	}
}

// TestMatrixTiles: matrices have to divide the results of a subgroup, and lines are made of vectors.
func TestMatrixTiles(t *testing.T) {
	base := Tile{M: 64, N: 32, K: 32, RowsPer: 32, ColsPer: 16, Matrix: Matrix{M: 16, N: 8, K: 16, Lanes: 32, Of: ir.Float16}}
	if !base.Fits() || base.Group() != 128 {
		t.Errorf("%+v has groups of %d", base, base.Group())
	}
	// Both sides are padded by two vectors a line, sums by four words.
	if got, want := base.Memory(), 8*(32*(64/4+2)+32*(32/4+2))+4*4*16*(16+4); got != want {
		t.Errorf("%d bytes of workgroup memory, want %d", got, want)
	}
	base.Matrix.Parts = 3
	if got, want := base.Memory(), 3*8*(32*(64/4+2)+32*(32/4+2))+4*4*16*(16+4); got != want || !base.Fits() {
		t.Errorf("%d bytes of workgroup memory in parts, want %d", got, want)
	}
	base.Ahead = true
	if got, want := base.Memory(), 2*3*8*(32*(64/4+2)+32*(32/4+2))+4*4*16*(16+4); got != want || !base.Fits() {
		t.Errorf("%d bytes of workgroup memory of two stretches, want %d", got, want)
	}
	base.Matrix.Parts, base.Ahead = 0, false
	for name, change := range map[string]func(*Tile){
		"none":             func(t *Tile) { t.Matrix = Matrix{} },
		"no lanes":         func(t *Tile) { t.Matrix.Lanes = 0 },
		"float32":          func(t *Tile) { t.Matrix.Of = ir.Float32 },
		"ahead, in a loop": func(t *Tile) { t.Ahead, t.Looped = true, true },
		"ahead, uneven":    func(t *Tile) { t.Ahead, t.Matrix.Lanes = true, 24 },
		"one part":         func(t *Tile) { t.Matrix.Parts = 1 },
		"rows":             func(t *Tile) { t.RowsPer = 8 },
		"columns":          func(t *Tile) { t.ColsPer = 4 },
		"no rows":          func(t *Tile) { t.RowsPer = 0 },
		"subgroups":        func(t *Tile) { t.M = 80 },
		"stretch":          func(t *Tile) { t.K = 24 },
		"uneven":           func(t *Tile) { t.Matrix.K = 2 },
		"uneven, along m":  func(t *Tile) { t.Matrix.M = 2 },
	} {
		x := base
		if change(&x); x.Fits() {
			t.Errorf("%s: %+v fits", name, x)
		}
	}
}
