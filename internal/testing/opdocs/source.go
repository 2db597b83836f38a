package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// A function is an exported function, or a method of Tensor, as the source declares it.
type function struct {
	name      string // "Concat", "Tensor.Add", "linalg.Solve"
	signature string
	line      string // the first sentence of its documentation
	tensors   bool   // it is a method of Tensor, or takes or gives tensors
	takes     bool   // it is given tensors
	dt        bool   // it has a parameter dt, the result's dtype
}

// declared are the functions of packages millrace and linalg.
func declared(root string) (map[string]function, error) {
	all := map[string]function{}
	for prefix, dir := range map[string]string{"": ".", "linalg.": "linalg"} {
		fset := token.NewFileSet()
		files, err := parseAll(fset, filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		d, err := doc.NewFromFiles(fset, files, "github.com/millrace-go/millrace/"+dir)
		if err != nil {
			return nil, err
		}
		add := func(prefix string, f *doc.Func) error {
			text, err := signature(fset, f.Decl)
			if err != nil {
				return err
			}
			t := f.Decl.Type
			all[prefix+f.Name] = function{
				name: prefix + f.Name, signature: strings.ReplaceAll(prefix, "Tensor.", "t.") + text, line: sentence(d.Synopsis(f.Doc)),
				tensors: f.Recv != "" || hasTensor(t.Params) || hasTensor(t.Results),
				takes:   f.Recv != "" || hasTensor(t.Params), dt: hasParam(t.Params, "dt"),
			}
			return nil
		}
		for _, f := range d.Funcs {
			err = first(err, add(prefix, f))
		}
		for _, t := range d.Types {
			for _, f := range t.Funcs {
				err = first(err, add(prefix, f))
			}
			for _, f := range t.Methods {
				if t.Name == "Tensor" {
					err = first(err, add("Tensor.", f))
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// parseAll reads the files of a folder, but for tests.
func parseAll(fset *token.FileSet, dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, e := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err = first(err, e); e == nil {
			files = append(files, f)
		}
	}
	return files, err
}

// signature is a declaration without its receiver, in one line. The name of a single result says
// nothing to a reader and is left out.
func signature(fset *token.FileSet, d *ast.FuncDecl) (string, error) {
	typ := *d.Type
	if r := typ.Results; r != nil && r.NumFields() == 1 {
		typ.Results = &ast.FieldList{List: []*ast.Field{{Type: r.List[0].Type}}}
	}
	var b bytes.Buffer
	err := printer.Fprint(&b, fset, &ast.FuncDecl{Name: d.Name, Type: &typ})
	return strings.ReplaceAll(strings.TrimPrefix(strings.Join(strings.Fields(b.String()), " "), "func "), "*tensor", "*Tensor"), err
}

// sentence is a synopsis without what only the documentation of the whole can resolve.
func sentence(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, "."), ":") }

func hasTensor(list *ast.FieldList) (has bool) {
	if list == nil {
		return false
	}
	ast.Inspect(list, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		has = has || ok && (id.Name == "Tensor" || id.Name == "tensor")
		return true
	})
	return has
}

func hasParam(list *ast.FieldList, name string) bool {
	return slices.ContainsFunc(list.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}

func sorted(funcs map[string]function) []function {
	var all []function
	for _, name := range slices.Sorted(maps.Keys(funcs)) {
		all = append(all, funcs[name])
	}
	return all
}

// exampleTexts are the expressions that the examples of the table's rows return, by row.
func exampleTexts(dir string) (map[string]string, error) {
	fset := token.NewFileSet()
	files, err := parseAll(fset, dir)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			row, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			name, isName := field(row, "Name").(*ast.BasicLit)
			call, isCall := field(row, "Example").(*ast.FuncLit)
			if !isName || !isCall || len(call.Body.List) != 1 {
				return true
			}
			ret, ok := call.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(ret.Results) != 1 {
				return true
			}
			var b bytes.Buffer
			if e := printer.Fprint(&b, fset, ret.Results[0]); e != nil {
				err = e
			}
			key, e := strconv.Unquote(name.Value)
			err = first(err, e)
			texts[key] = strings.Join(strings.Fields(b.String()), " ")
			return true
		})
	}
	return texts, err
}

// field is the value of a field of a struct's literal, or nil.
func field(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}
