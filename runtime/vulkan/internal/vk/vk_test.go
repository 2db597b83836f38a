//go:build (linux || darwin || windows) && (amd64 || arm64)

package vk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// TestLayout compares the structures with those of C.
func TestLayout(t *testing.T) {
	for _, l := range layout {
		typ := reflect.TypeOf(l.of)
		if typ.Size() != l.size || typ.NumField() != len(l.offsets) {
			t.Errorf("%v has %d bytes and %d fields, want %d and %d", typ, typ.Size(), typ.NumField(), l.size, len(l.offsets))
			continue
		}
		for i, at := range l.offsets {
			if f := typ.Field(i); f.Offset != at {
				t.Errorf("%v.%s is at %d, want %d", typ, f.Name, f.Offset, at)
			}
		}
	}
}

// TestPointers checks the rule of the package comment on the source of the packages that call
// Vulkan.
func TestPointers(t *testing.T) {
	seen := 0
	for _, dir := range []string{".", "../gpu"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(dir, err)
		}
		for _, name := range files {
			n, bad := pointers(t, name, nil)
			seen += n
			for _, at := range bad {
				t.Errorf("%s: a uintptr of a pointer outside of the operands of Call", at)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d conversions were found", seen)
	}
	const bad = "package p\nfunc f() {\n\tx := uintptr(unsafe.Pointer(&y))\n\tvk.Call(g, x, uintptr(unsafe.Pointer(&y)), h(uintptr(unsafe.Pointer(&y))))\n\tz := uintptr(p)\n}\n"
	if n, list := pointers(t, "bad.go", bad); n != 1 || len(list) != 3 {
		t.Errorf("a bad file has %d good conversions and bad ones %v", n, list)
	}
}

// pointers counts the conversions to uintptr among operands of calls, and lists those elsewhere
// that may be of a pointer.
func pointers(t *testing.T, name string, src any) (good int, bad []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	operands := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch callee(call) {
		case "Call", "SyscallN":
			for _, a := range call.Args {
				operands[a] = true
			}
		case "uintptr":
			switch {
			case operands[call]:
				good++
			case !isCount(call.Args[0]):
				bad = append(bad, fset.Position(call.Pos()).String())
			}
		}
		return true
	})
	return good, bad
}

func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// isCount reports whether an expression is a number that is no address: a length, a product of
// one, a literal, or the handle of a library or a procedure.
func isCount(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return isCount(x.X) && isCount(x.Y)
	case *ast.CallExpr:
		return callee(x) == "len"
	case *ast.Ident:
		return strings.HasPrefix(x.Name, "handle")
	}
	return false
}

// TestText checks strings in both directions.
func TestText(t *testing.T) {
	if s := StringAt(Text("main")); s != "main" {
		t.Errorf("%q", s)
	}
	if s := String([]byte("ab\x00c")); s != "ab" {
		t.Errorf("%q", s)
	}
}

// TestNoLoader says which libraries were looked for.
func TestNoLoader(t *testing.T) {
	if err := load([]string{"libnothing.so.7"}); err == nil || !strings.Contains(err.Error(), "no Vulkan loader") || !strings.Contains(err.Error(), "libnothing") {
		t.Errorf("%v", err)
	}
	var none struct{ NoSuchFunction uintptr }
	if _, err := Loader(); err != nil {
		t.Skipf("no loader: %v", err)
	}
	if err := fill(&none, loader.lookup, 0); err == nil || !strings.Contains(err.Error(), "vkNoSuchFunction") {
		t.Errorf("%v", err)
	}
}

// TestMatrixLayout compares structures that are written by hand with those of C.
func TestMatrixLayout(t *testing.T) {
	var m CooperativeMatrixPropertiesKHR
	if unsafe.Sizeof(m) != 56 || unsafe.Offsetof(m.MSize) != 16 || unsafe.Offsetof(m.AType) != 28 || unsafe.Offsetof(m.Scope) != 48 {
		t.Errorf("%d bytes, fields at %d, %d, %d", unsafe.Sizeof(m), unsafe.Offsetof(m.MSize), unsafe.Offsetof(m.AType), unsafe.Offsetof(m.Scope))
	}
	var f PhysicalDeviceCooperativeMatrixFeaturesKHR
	var b PhysicalDeviceShaderBfloat16FeaturesKHR
	if unsafe.Sizeof(f) != 24 || unsafe.Offsetof(f.CooperativeMatrix) != 16 || unsafe.Sizeof(b) != 32 || unsafe.Offsetof(b.ShaderBFloat16CooperativeMatrix) != 24 {
		t.Errorf("features have %d and %d bytes, fields at %d and %d", unsafe.Sizeof(f), unsafe.Sizeof(b), unsafe.Offsetof(f.CooperativeMatrix), unsafe.Offsetof(b.ShaderBFloat16CooperativeMatrix))
	}
}
