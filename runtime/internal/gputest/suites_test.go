package gputest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// TestNothingForgotten: every suite in the source is run.
func TestNothingForgotten(t *testing.T) {
	listed := map[string]bool{}
	for _, s := range append(suites, contract...) {
		if listed[s.name] {
			t.Errorf("%s is listed twice", s.name)
		}
		listed[s.name] = true
	}
	for _, s := range apart {
		if listed[s.name] {
			t.Errorf("%s is listed twice", s.name)
		}
		listed[s.name] = true
	}
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range pkgs["gputest"].Files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "test") {
				continue
			}
			found++
			if name := strings.TrimPrefix(f.Name.Name, "test"); !listed[name] {
				t.Errorf("%s is not run", f.Name.Name)
			}
		}
	}
	if found != len(listed) {
		t.Errorf("%d suites, %d listed", found, len(listed))
	}
}
