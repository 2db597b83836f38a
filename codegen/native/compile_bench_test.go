package native_test

import (
	"testing"

	"github.com/millrace-go/millrace/codegen"
	"github.com/millrace-go/millrace/codegen/native"
	"github.com/millrace-go/millrace/codegen/native/amd64"
	"github.com/millrace-go/millrace/ir"
)

// BenchmarkCompile makes code of a power, whose expansion is long.
func BenchmarkCompile(b *testing.B) {
	k, err := codegen.Parse("in 0 : float32\nin 1 : float32\nout 2 : float32\n%0 = load 0 : float32\n%1 = load 1 : float32\n%2 = pow %0 %1 : float32\nstore 2 %2\n")
	if err != nil {
		b.Fatal(err)
	}
	k.Denormals = ir.KeepDenormals
	if k, err = codegen.Lower(k); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := native.Compile(k, native.Variant{Class: make([]codegen.AccessClass, 3)}, amd64.AVX2, false); err != nil {
			b.Fatal(err)
		}
	}
}
