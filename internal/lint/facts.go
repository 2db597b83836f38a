package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Facts are the existing names of the kinds that documents mention, read from the source.
type Facts struct {
	Root    string
	Targets map[string]bool            // of the Makefile
	Steps   map[string]bool            // of scripts/test.sh
	Env     map[string]bool            // variables MILLRACE_* that code or scripts read
	Tests   map[string][]string        // by folder: tests, benchmarks, examples, fuzz targets
	Flags   map[string]map[string]bool // by folder of a program: flags defined through package flag
	Decls   map[string]map[string]bool // by a package's name: its declarations
	Members map[string]map[string]bool // by a type's name: methods and fields, embedded ones included
	// FieldTypes are, by a field's name, the types of the fields of that name.
	FieldTypes map[string]map[string]bool
	AllMembers map[string]bool
	Words      map[string]bool    // every name that some file declares or uses
	Option     func(string) error // of a device, as in cpu:threads=2
	Debug      func(string) error // of MILLRACE_DEBUG
}

var (
	target = regexp.MustCompile(`(?m)^([a-z][a-z -]*):`)
	step   = regexp.MustCompile(`(?m)^([a-z_]+)\(\) [{]`)
	envVar = regexp.MustCompile(`\bMILLRACE_[A-Z]\w*`)
	aTest  = regexp.MustCompile(`^(Test|Benchmark|Example|Fuzz)`)
)

// ReadFacts reads the facts of the module at root and of the modules in its folders.
func ReadFacts(root string) (*Facts, error) {
	f := &Facts{
		Root: root, Targets: map[string]bool{}, Steps: map[string]bool{}, Env: map[string]bool{}, Tests: map[string][]string{},
		Flags: map[string]map[string]bool{}, Decls: map[string]map[string]bool{}, Members: map[string]map[string]bool{},
		FieldTypes: map[string]map[string]bool{}, AllMembers: map[string]bool{}, Words: map[string]bool{},
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		for _, name := range strings.Fields(m[1]) {
			f.Targets[name] = true
		}
	}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (name == "testdata" || name[0] == '.' || name[0] == '_') {
				return filepath.SkipDir
			}
			return nil
		}
		switch d.Name() {
		case "go.mod":
			return f.readModule(p)
		case "Makefile":
			return f.readScript(p)
		}
		if filepath.Ext(p) == ".sh" {
			return f.readScript(p)
		}
		return nil
	})
	return f, err
}

func (f *Facts) readScript(file string) error {
	text, err := os.ReadFile(file)
	for _, name := range envVar.FindAllString(string(text), -1) {
		f.Env[name] = true
	}
	if filepath.Base(file) == "test.sh" {
		for _, m := range step.FindAllStringSubmatch(string(text), -1) {
			f.Steps[strings.ReplaceAll(m[1], "_", "-")] = true
		}
	}
	return err
}

func (f *Facts) readModule(file string) error {
	tree, err := Load(filepath.Dir(file))
	if err != nil {
		return err
	}
	at, err := filepath.Rel(f.Root, tree.Root)
	if err != nil {
		return err
	}
	for dir, pkg := range tree.Pkgs {
		f.readPackage(path.Join(filepath.ToSlash(at), dir), pkg)
	}
	// A type defined by another one has the same members.
	for _, pkg := range tree.Pkgs {
		for _, file := range pkg.Files {
			ast.Inspect(file.AST, func(n ast.Node) bool {
				if t, ok := n.(*ast.TypeSpec); ok && t.Assign.IsValid() {
					f.embed(t.Name.Name, lastName(t.Type))
				}
				return true
			})
		}
	}
	return nil
}

func (f *Facts) embed(name, other string) {
	for m := range f.Members[other] {
		f.member(name, m)
	}
}

func (f *Facts) member(typ, name string) {
	put(f.Members, typ, name)
	f.AllMembers[name] = true
}

func put(m map[string]map[string]bool, key, name string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][name] = true
}

// lastName is T of T, *T, p.T and T[X].
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return lastName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.IndexListExpr:
		return lastName(e.X)
	}
	return ""
}

func (f *Facts) readPackage(dir string, pkg *Pkg) {
	f.Tests[dir] = append(f.Tests[dir], "") // marks that the folder exists
	for _, file := range pkg.Files {
		name := strings.TrimSuffix(file.AST.Name.Name, "_test")
		for _, d := range file.AST.Decls {
			f.readDecl(dir, name, file, d)
		}
		if dir == "internal/lint" {
			continue // its tests name things that do not exist
		}
		ast.Inspect(file.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				f.Words[n.Name] = true
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					for _, name := range envVar.FindAllString(n.Value, -1) {
						f.Env[name] = true
					}
					for _, word := range regexp.MustCompile(`\w+`).FindAllString(n.Value, -1) {
						f.Words[word] = true
					}
				}
			case *ast.CallExpr:
				f.readFlag(dir, n)
			}
			return true
		})
	}
}

func (f *Facts) readDecl(dir, pkg string, file *File, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			f.member(lastName(d.Recv.List[0].Type), d.Name.Name)
			return
		}
		put(f.Decls, pkg, d.Name.Name)
		if file.Test && aTest.MatchString(d.Name.Name) {
			f.Tests[dir] = append(f.Tests[dir], d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					put(f.Decls, pkg, n.Name)
				}
			case *ast.TypeSpec:
				put(f.Decls, pkg, s.Name.Name)
				f.member(s.Name.Name, "")
				f.readFields(s.Name.Name, s.Type)
			}
		}
	}
}

func (f *Facts) readFields(name string, t ast.Expr) {
	var list *ast.FieldList
	switch t := t.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, n := range field.Names {
			f.member(name, n.Name)
			put(f.FieldTypes, n.Name, lastName(field.Type))
		}
		if len(field.Names) == 0 {
			f.member(name, lastName(field.Type))
			f.embed(name, lastName(field.Type))
		}
	}
}

// flagCall matches functions of package flag that define a flag.
var flagCall = regexp.MustCompile(`^(Bool|Duration|Float64|Func|Int|Int64|String|Text|Uint|Uint64)?(Var|Func)?$`)

// readFlag records a flag definition: the first string argument is the flag's name.
func (f *Facts) readFlag(dir string, call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !flagCall.MatchString(sel.Sel.Name) {
		return
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "flag" && x.Name != "f" && x.Name != "fs" && x.Name != "flags" {
		return
	}
	for _, a := range call.Args {
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if name, err := strconv.Unquote(lit.Value); err == nil {
				put(f.Flags, dir, name)
			}
			return
		}
	}
}
