package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Shown is a Go block of a page as a whole file. A block with a package clause stays as it is.
// Any other block is a fragment: it gets a package clause, the imports of the packages that it
// names, and a function around its statements.
type Shown struct {
	Path     string // import path; the pages' programs import each other by it
	Fragment bool
	Src      string
}

// given is a comment of a page in front of a fragment. It declares the variables that the fragment
// does not, such as <!-- go: x, y *millrace.Tensor; ctx context.Context -->.
var given = regexp.MustCompile(`^<!-- go: (.*) -->$`)

var (
	ofModule = regexp.MustCompile(`(?m)^go mod init (\S+)$`)
	ofFile   = regexp.MustCompile(`^// ((?:\w+/)*)\w+\.go\n`)
	clause   = regexp.MustCompile(`(?m)^package \w+$`)
	topDecl  = regexp.MustCompile(`^(type|func|var|const|//go:embed) `)
	importOf = regexp.MustCompile(`^import (\(|\S* ?")`)
)

// known are the packages that a fragment may name without an import.
var known = map[string]string{
	"millrace": Module, "nn": Module + "/nn", "optim": Module + "/optim", "autodiff": Module + "/autodiff", "dist": Module + "/dist", "data": Module + "/data",
	"linalg": Module + "/linalg", "onnx": Module + "/onnx", "npy": Module + "/npy", "safetensors": Module + "/safetensors", "compute": "github.com/gomlx/compute",
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "io": "io", "log": "log", "math": "math", "os": "os",
	"slices": "slices", "strings": "strings", "time": "time",
}

// ShownGo are the Go blocks of a page, in its order.
func ShownGo(page, text string) (all []Shown) {
	module, lines := "page", strings.Split(text, "\n")
	if m := ofModule.FindStringSubmatch(text); m != nil {
		module = m[1]
	}
	for _, s := range Snippets(text) {
		if !s.Block || s.Lang != "go" {
			continue
		}
		at := fmt.Sprintf("//line %s:%d\n", page, s.Line)
		if clause.MatchString(s.Text) {
			dir := ""
			if m := ofFile.FindStringSubmatch(s.Text); m != nil {
				dir = m[1]
			}
			all = append(all, Shown{Path: path.Join(module, dir), Src: at + s.Text})
			continue
		}
		vars := ""
		for i := s.Line - 3; i >= 0; i-- { // the line above the fence
			m := given.FindStringSubmatch(lines[i])
			if m == nil {
				break
			}
			vars = m[1] + "; " + vars
		}
		all = append(all, Shown{Path: fmt.Sprintf("%s/line%d", module, s.Line), Fragment: true, Src: wrap(page, s, vars)})
	}
	return all
}

// wrap makes a whole file of a fragment.
func wrap(page string, s Snippet, vars string) string {
	var imports, top, body strings.Builder
	part, end := &body, "" // part takes the lines up to end, a line that closes a declaration
	for i, l := range strings.Split(strings.TrimSuffix(s.Text, "\n"), "\n") {
		if end == "" {
			switch opens := strings.HasSuffix(l, "{") || strings.HasSuffix(l, "("); {
			case importOf.MatchString(l):
				part = &imports
				end = map[bool]string{true: ")"}[opens]
			case topDecl.MatchString(l):
				part = &top
				end = map[bool]string{true: "}"}[opens]
			default:
				part = &body
			}
		} else if l == end {
			end = ""
		}
		fmt.Fprintf(part, "//line %s:%d\n%s\n", page, s.Line+i, l)
	}
	if vars != "" {
		fmt.Fprintf(&top, "//line %s:%d\nvar (%s)\n", page, s.Line-2, strings.TrimSuffix(vars, "; "))
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if regexp.MustCompile(`\b`+name+`\.[A-Z]`).MatchString(body.String()+top.String()) && !strings.Contains(imports.String(), strconv.Quote(known[name])) {
			fmt.Fprintf(&imports, "import %q\n", known[name])
		}
	}
	return "package shown\n" + imports.String() + top.String() + "func _() {\n" + body.String() + "}\n"
}

// Compile type-checks shown code and returns the errors. Fragments may leave variables and imports
// unused. Blank imports are only parsed: Facts.Missing looks for their packages.
func Compile(root string, shown []Shown) ([]error, error) {
	fset, files, needed := token.NewFileSet(), make([]*ast.File, len(shown)), map[string]bool{}
	var bad []error
	for i, s := range shown {
		f, err := parser.ParseFile(fset, "", s.Src, parser.SkipObjectResolution)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		files[i] = f
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
				g.Specs = slices.DeleteFunc(g.Specs, func(s ast.Spec) bool { n := s.(*ast.ImportSpec).Name; return n != nil && n.Name == "_" })
			}
		}
		for _, im := range f.Imports {
			if im.Name == nil || im.Name.Name != "_" {
				p, _ := strconv.Unquote(im.Path.Value)
				needed[p] = true
			}
		}
	}
	for _, s := range shown {
		delete(needed, s.Path)
	}
	compiled, err := exports(root, slices.Sorted(maps.Keys(needed)))
	if err != nil {
		return nil, err
	}
	im := &shownImporter{compiled: importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) {
		if compiled[p] == "" {
			return nil, fmt.Errorf("no package %s", p)
		}
		return os.Open(compiled[p])
	}), own: map[string]*types.Package{}}
	for i, s := range shown {
		if files[i] == nil {
			continue
		}
		conf := types.Config{Importer: im, Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) && s.Fragment && e.Soft {
				return
			}
			bad = append(bad, err)
		}}
		im.own[s.Path], _ = conf.Check(s.Path, fset, []*ast.File{files[i]}, nil)
	}
	return bad, nil
}

// shownImporter imports packages that pages show, and compiled ones.
type shownImporter struct {
	own      map[string]*types.Package
	compiled types.Importer
}

func (im *shownImporter) Import(p string) (*types.Package, error) {
	if own := im.own[p]; own != nil {
		return own, nil
	}
	return im.compiled.Import(p)
}

// exports has the go command compile packages, and gives the files with their declarations by
// import path. It works in the workspace, which has the modules that pages name.
func exports(root string, pkgs []string) (map[string]string, error) {
	if len(pkgs) == 0 {
		return nil, nil
	}
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}, pkgs...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, errs.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		p, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[p] = file
	}
	return files, nil
}
