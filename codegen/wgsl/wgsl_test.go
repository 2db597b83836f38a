package wgsl

import (
	"strings"
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/shader"
	"github.com/millrace-go/millrace/internal/testing/shadertest"
)

// TestGolden checks the text of some shaders, and of all ops.
func TestGolden(t *testing.T) { shadertest.Golden(t, Dialect, "testdata") }

// TestFunctions checks that sine is a function that keeps its roundings, and that its slow path is a
// function of a single lane. There is no golden text, because the expansion may be tuned.
func TestFunctions(t *testing.T) {
	k, err := codegen.Parse("in 0 : float32\nout 1 : float32\n%0 = load 0 : float32\n%1 = sin %0 : float32\nstore 1 %1")
	if err != nil {
		t.Fatal(err)
	}
	if k, err = shader.Prepare(k); err != nil {
		t.Fatal(err)
	}
	v := shader.Dense(k, 4)
	text, err := shader.Print(Dialect, k, &v)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fn op_sin(x0 : vec4<f32>) -> vec4<f32> {",
		"mr_keep(mr_keep(",
		"if (any(",
		"fn subkept_sin_large_float32(x0 : f32) -> f32 {",
		"m1_keep(m1_keep(",
		"let v1 = op_sin(v0);",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "fn op_sin"); n != 1 {
		t.Errorf("sine is defined %d times", n)
	}
}
