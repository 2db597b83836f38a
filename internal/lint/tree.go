package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is the path of the module these rules are about.
const Module = "github.com/millrace-go/millrace"

// A Tree is the module's source, parsed.
type Tree struct {
	Root string // the folder with go.mod
	Fset *token.FileSet
	Pkgs map[string]*Pkg // by folder relative to Root, slash-separated; "." is the root package
}

// A Pkg is one folder with Go files.
type Pkg struct {
	Dir   string
	Files []*File
}

// A File is one Go file.
type File struct {
	Path   string // relative to Tree.Root
	Src    []byte
	AST    *ast.File
	Test   bool
	Ignore bool // a program for `go run`, excluded from its package by a constraint
}

// Load parses every Go file of the module that contains dir.
func Load(dir string) (*Tree, error) {
	root, err := findRoot(dir)
	if err != nil {
		return nil, err
	}
	t := &Tree{Root: root, Fset: token.NewFileSet(), Pkgs: map[string]*Pkg{}}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, p, d.Name())
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		return t.add(p)
	})
	return t, err
}

// skipDir skips folders that the go command skips, and nested modules.
func skipDir(root, p, name string) error {
	if p == root {
		return nil
	}
	if name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_' {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// NestedModules lists the folders directly below root that are separate modules.
func NestedModules(root string) ([]string, error) {
	mods, err := filepath.Glob(filepath.Join(root, "*", "go.mod"))
	for i, m := range mods {
		mods[i] = filepath.Dir(m)
	}
	return mods, err
}

func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
		dir = up
	}
}

var ignored = regexp.MustCompile(`(?m)^//go:build .*\bignore\b`)

func (t *Tree) add(p string) error {
	src, err := os.ReadFile(p)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(t.Root, p)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	f, err := parser.ParseFile(t.Fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	pkg := t.Pkgs[dir]
	if pkg == nil {
		pkg = &Pkg{Dir: dir}
		t.Pkgs[dir] = pkg
	}
	pkg.Files = append(pkg.Files, &File{
		Path: rel, Src: src, AST: f,
		Test:   strings.HasSuffix(rel, "_test.go"),
		Ignore: ignored.Match(src),
	})
	return nil
}

// Dirs lists the packages' folders, sorted.
func (t *Tree) Dirs() []string {
	var dirs []string
	for d := range t.Pkgs {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	return dirs
}

// Imports lists a package's imports, sorted and without duplicates: those of its tests if tests is
// set, else those of its other files.
func (p *Pkg) Imports(tests bool) []string {
	var all []string
	for _, f := range p.Files {
		if f.Ignore || f.Test != tests {
			continue
		}
		for _, im := range f.AST.Imports {
			name, err := strconv.Unquote(im.Path.Value)
			if err == nil {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// folder converts an import path of this module to a folder of the tree.
func folder(importPath string) (string, bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}
