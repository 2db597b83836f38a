package lint

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// fakeTree makes a tree from folder/file names and sources.
func fakeTree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	tree := &Tree{Fset: token.NewFileSet(), Pkgs: map[string]*Pkg{}}
	for name, src := range files {
		f, err := parser.ParseFile(tree.Fset, name, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := "."
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			dir = name[:i]
		}
		if tree.Pkgs[dir] == nil {
			tree.Pkgs[dir] = &Pkg{Dir: dir}
		}
		p := tree.Pkgs[dir]
		p.Files = append(p.Files, &File{Path: name, Src: []byte(src), AST: f, Test: strings.HasSuffix(name, "_test.go")})
	}
	return tree
}

func imports(pkg string, paths ...string) string {
	src := "package " + pkg + "\n"
	for _, p := range paths {
		src += "import _ \"" + p + "\"\n"
	}
	return src
}

func TestCheckWalls(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"tests import a package of internal/testing", map[string]string{
			"internal/testing/x/a.go": imports("x"), "ir/a.go": imports("ir"), "ir/a_test.go": imports("ir", Module+"/internal/testing/x"),
		}, ""},
		{"code imports a package of internal/testing", map[string]string{
			"internal/testing/x/a.go": imports("x"), "ir/a.go": imports("ir", Module+"/internal/testing/x"),
		}, "ir imports internal/testing/x, which is for tests"},
		{"only tests import a helper", map[string]string{
			"internal/x/a.go": imports("x"), "ir/a.go": imports("ir"), "ir/a_test.go": imports("ir", Module+"/internal/x"),
		}, "internal/x: only tests import it"},
		{"a helper imports the root", map[string]string{
			"internal/x/a.go": imports("x", Module), "nn/a.go": imports("nn", Module+"/internal/x"), "a.go": imports("millrace"),
		}, "internal/x imports the root package"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, fakeTree(t, c.files).CheckWalls(), c.want) })
	}
}

func TestCheckRanks(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  string // part of the only message; "" for none
	}{
		{"down is fine", map[string]string{
			"stream/a.go": imports("stream", Module+"/ir"), "ir/a.go": imports("ir", "math"),
		}, ""},
		{"up", map[string]string{
			"ir/a.go": imports("ir", Module+"/runtime"), "runtime/a.go": imports("runtime", "math"),
		}, "ir (rank 0) imports runtime (rank 1)"},
		{"sideways", map[string]string{
			"queue/a.go": imports("queue", Module+"/segment"), "segment/a.go": imports("segment"),
		}, "imports go down"},
		{"through an internal package", map[string]string{
			"ir/a.go":         imports("ir", Module+"/internal/x"),
			"internal/x/a.go": imports("x", Module+"/fusion"),
			"fusion/a.go":     imports("fusion", "math"),
		}, "ir (rank 0) imports internal/x (rank 4)"},
		{"driver by the engine", map[string]string{
			"stream/a.go": imports("stream", Module+"/runtime/cpu"),
		}, "imports driver runtime/cpu"},
		{"GPU driver by the root", map[string]string{
			"a.go": imports("millrace", Module+"/runtime/webgpu"),
		}, "imports driver runtime/webgpu"},
		{"CPU driver by the root is fine", map[string]string{
			"a.go": imports("millrace", Module+"/runtime/cpu"),
		}, ""},
		{"driver above itself", map[string]string{
			"runtime/null/a.go": imports("null", Module+"/fusion"),
		}, "driver runtime/null imports fusion"},
		{"driver's printer is fine", map[string]string{
			"runtime/cpu/a.go": imports("cpu", Module+"/codegen/cgo"), "codegen/cgo/a.go": imports("cgo"),
		}, ""},
		{"a package without a rank", map[string]string{"extra/a.go": imports("extra", "math")}, "extra: no rank"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, fakeTree(t, c.files).CheckRanks(), c.want) })
	}
}

func TestCheckRooms(t *testing.T) {
	dir := "runtime/cpu/internal/"
	cases := []struct {
		name  string
		files map[string]string
		want  string // part of the only message; "" for none
	}{
		{"down is fine", map[string]string{
			dir + "fold/a.go": imports("fold", Module+"/"+dir+"jit"), dir + "jit/a.go": imports("jit"),
		}, ""},
		{"sideways", map[string]string{
			dir + "jit/a.go": imports("jit", Module+"/"+dir+"memory"), dir + "memory/a.go": imports("memory"),
		}, "imports go down"},
		{"a room without a rank", map[string]string{dir + "extra/a.go": imports("extra")}, "extra: no rank"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, fakeTree(t, c.files).CheckRooms(), c.want) })
	}
}

func TestCheckDownloads(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"xxhash is fine", map[string]string{"a.go": imports("millrace", hashModule)}, ""},
		{"another module", map[string]string{
			"a.go": imports("millrace", Module+"/ir"), "ir/a.go": imports("ir", "golang.org/x/sys/cpu"),
		}, "ir imports golang.org/x/sys/cpu"},
		{"test library", map[string]string{
			"a.go": imports("millrace", "math"), "a_test.go": imports("millrace", "github.com/google/go-cmp/cmp"),
		}, "the tests of . import github.com/google/go-cmp/cmp"},
		{"test of a GPU driver", map[string]string{
			"a.go": imports("millrace"), "a_test.go": imports("millrace", Module+"/runtime/webgpu"),
			"runtime/webgpu/a.go": imports("webgpu", "github.com/rajveermalviya/go-webgpu/wgpu"),
		}, "the tests of . need it"},
		{"GPU driver outside the closure is fine", map[string]string{
			"a.go": imports("millrace"), "runtime/webgpu/a.go": imports("webgpu", "github.com/rajveermalviya/go-webgpu/wgpu"),
		}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { expect(t, fakeTree(t, c.files).CheckDownloads(), c.want) })
	}
}

func TestCheckProducts(t *testing.T) {
	cases := []struct {
		body string
		bad  bool
	}{
		{"r = a*b + c", true},
		{"r = float32(a*b) + c", false},
		{"r = float32((a*b)) + c", false},
		{"r = c - (a*b)", true},
		{"p := a * b; r = p + c", true},
		{"r *= a", true},
		{"r = float32(a*b*c) + c", false},
		{"r = a*b*c + c", true},
		{"r = float32(float32(a*b)*c) / c", false},
		{"r = a * b / c", false},
		{"if a*b < c { r = 1 }", false},
		{"u = math.Float32bits(a * b)", false},
		{"r = f(a * b)", true},
		{"r = -(a * b)", true},
		{"i = i*j + i", false},
		{"r = 2*3 + c", false},
		{"r = float32(i*j) + c", false},
		{"//millrace:inexact a cost\nr = a*b + c", false},
		{"//millrace:inexact \nr = a*b + c", true}, // no reason given
		{"r = g(a)", false},
		{"d = float64(a)*d + 1", true},
		{"z = z*z + 1", true},
	}
	for _, c := range cases {
		src := "package p\nimport \"math\"\nvar _ = math.Pi\nfunc f(x float32) float32 { return x }\n" +
			"func g[T float32|int](x T) T { return T(x*x) + x }\n" +
			"func h(a, b, c, r float32, d float64, i, j int, u uint32, z complex64) {\n" + c.body + "\n}\n"
		k := newChecker("", build.Default)
		f, err := parser.ParseFile(k.fset, "p.go", src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.products([]*ast.File{f}); (len(got) > 0) != c.bad {
			t.Errorf("%s: found %q, want a finding: %v", c.body, got, c.bad)
		}
	}
}

func TestGenericProduct(t *testing.T) {
	k := newChecker("", build.Default)
	f, err := parser.ParseFile(k.fset, "p.go", "package p\ntype num interface{ ~float32 | ~int32 }\nfunc g[T num](x T) T { return x*x + x }\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.products([]*ast.File{f}); len(got) != 1 {
		t.Errorf("found %q, want one", got)
	}
}

func TestCheckFile(t *testing.T) {
	long := strings.Repeat("\n", MaxLines+1)
	cases := []struct{ base, src, want string }{
		{"a.go", "package a\n", ""},
		{"a.go", long, "split it"},
		{"z_a.go", "// Code generated by gen. DO NOT EDIT.\n" + long, ""},
		{"z_a.c", "/* Code generated by gen. DO NOT EDIT. */\n", ""},
		{"z_a.go", "package a\n", "without a line"},
		{"a.go", "// Code generated by gen. DO NOT EDIT.\n", "name it z_a.go"},
	}
	for _, c := range cases {
		got := checkFile(c.base, []byte(c.src))
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.base, got, c.want)
		}
	}
}

func TestCheckDocsAndStyle(t *testing.T) {
	tree := fakeTree(t, map[string]string{
		"ir/a.go":    "// Package ir is it.\npackage ir\n",
		"queue/a.go": "// Package queue is it.\n//\n// " + enginePart + "\npackage queue\n",
		"queue/b.go": "package  queue\n\n// TODO: more\n",
		"fusion/a.go": "// Package fusion is it.\n//\n// " + enginePart + "\npackage fusion\n\n" +
			"import (\n\t_ \"runtime\"\n\n\t_ \"" + Module + "/runtime\"\n)\n",
	})
	expect(t, tree.CheckDocs(), "ir: the package comment must end")
	expect(t, tree.CheckFormat(), "queue/b.go: not formatted")
	expect(t, tree.CheckLeftovers(), "TODO")
	expect(t, tree.CheckRuntimeName(), "fusion/a.go: imports both")
}

func TestCheckGuides(t *testing.T) {
	const doc, user = "// Package p is it.\n//\n// Input: a. Output: b. Read\n// a.go first, then b.go.\npackage p\n", "// Package p is it.\n//\n// Of the source, read a.go first.\npackage p\n"
	for _, c := range []struct{ name, source, want string }{
		{"queue/doc.go", doc, ""},
		{"queue/a.go", doc, "move the package comment to doc.go"},
		{"queue/doc.go", strings.Replace(doc, "a.go first", "c.go first", 1), "says to read c.go first"},
		{"queue/doc.go", strings.Replace(doc, " Output: b.", "", 1), "needs a paragraph \"Input:"},
		{"queue/doc.go", strings.Replace(doc, "it.\n//\n", "it.\n", 1), "needs a paragraph \"Input:"},
		{"queue/doc.go", user, "needs a paragraph \"Input:"},
		{"npy/doc.go", user, ""},
		{"npy/doc.go", doc, "needs a paragraph \"Of the source"},
		{"cmd/a/main.go", strings.ReplaceAll(doc, "package p", "package main"), ""},
		{"cmd/a/doc.go", strings.ReplaceAll(doc, "package p", "package main"), "move the package comment to main.go"},
		{"examples/a/main.go", "// Command a is it.\npackage main\n", ""},
	} {
		files := map[string]string{c.name: c.source}
		if other := path.Dir(c.name) + "/a.go"; other != c.name {
			files[other] = "package p\n"
		}
		expect(t, fakeTree(t, files).CheckGuides(), c.want)
	}
}

func TestCheckTestCaches(t *testing.T) {
	source := "package npy_test\n\nimport (\n\t_ \"" + Module + "\"\n"
	tree := fakeTree(t, map[string]string{"npy/a_test.go": source + ")\n"})
	expect(t, tree.CheckTestCaches(), "npy: its tests may use the user's cache")
	tree = fakeTree(t, map[string]string{"npy/a_test.go": source + "\t_ \"" + Module + "/internal/testing/nocache\"\n)\n"})
	expect(t, tree.CheckTestCaches(), "")
}

// expect checks that there is one message containing want, or none if want is empty.
func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("found %q, want %q", got, want)
	}
}
