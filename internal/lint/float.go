package lint

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// Go may compute x*y + z with one rounding, on arm64, ppc64, s390x, and on amd64 with GOAMD64=v3,
// even if the product went through a variable, a memory cell or an inlined call on its way to the
// addition. Only an explicit conversion forbids it. Code with guaranteed bits therefore rounds
// every float product at once: float32(a*b).

// inexact marks a line whose float products are not values of tensors (costs, times), with the
// reason after it.
const inexact = "//millrace:inexact "

// FloatProducts type-checks the package in dir, once for each build configuration that selects
// different files, and finds float products that are not rounded at once. A product may also be an
// operand of a product, a quotient or a comparison, or the argument of math.Float32bits or
// Float64bits: no addition can be fused with it there.
func FloatProducts(root, dir string) ([]string, error) {
	var bad []string
	seen := map[string]bool{}
	for _, cfg := range buildConfigs() {
		files, err := selectFiles(cfg, filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		key := strings.Join(files, "\n")
		if len(files) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		c := newChecker(root, cfg)
		parsed, err := c.parse(files)
		if err != nil {
			return nil, err
		}
		bad = append(bad, c.products(parsed)...)
	}
	slices.Sort(bad)
	bad = slices.Compact(bad)
	for i := range bad {
		bad[i] = strings.TrimPrefix(bad[i], root+string(filepath.Separator))
	}
	return bad, nil
}

// buildConfigs are the platforms whose files differ: with and without cgo, 64 and 32 bits, and one
// that is not Unix.
func buildConfigs() []build.Context {
	var all []build.Context
	for _, target := range []string{"linux/amd64", "linux/arm64", "linux/386", "darwin/arm64", "windows/amd64", "js/wasm"} {
		for _, cgo := range []bool{true, false} {
			c := build.Default
			c.GOOS, c.GOARCH, _ = strings.Cut(target, "/")
			c.CgoEnabled = cgo
			all = append(all, c)
		}
	}
	return all
}

func selectFiles(c build.Context, dir string) ([]string, error) {
	matches, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, m := range matches {
		if strings.HasSuffix(m, "_test.go") {
			continue
		}
		ok, err := c.MatchFile(dir, filepath.Base(m))
		if err != nil {
			return nil, err
		}
		if ok {
			files = append(files, m)
		}
	}
	return files, nil
}

// A checker type-checks only as far as float types need it. Packages of this module are checked
// from their source, and of the standard library only math is. Other parts of expressions stay
// unresolved: an unknown operand beside a float one still makes a float product.
type checker struct {
	root string
	cfg  build.Context
	fset *token.FileSet
	std  types.Importer
	pkgs map[string]*types.Package
}

func newChecker(root string, cfg build.Context) *checker {
	fset := token.NewFileSet()
	return &checker{root, cfg, fset, importer.ForCompiler(fset, "source", nil), map[string]*types.Package{}}
}

func (c *checker) parse(paths []string) ([]*ast.File, error) {
	var files []*ast.File
	for _, p := range paths {
		f, err := parser.ParseFile(c.fset, p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if path == "math" || path == "math/bits" {
		return c.std.Import(path)
	}
	dir, ok := folder(path)
	if !ok {
		return nil, fmt.Errorf("%s is not looked at", path)
	}
	if p := c.pkgs[path]; p != nil {
		return p, nil
	}
	paths, err := selectFiles(c.cfg, filepath.Join(c.root, dir))
	if err != nil {
		return nil, err
	}
	files, err := c.parse(paths)
	if err != nil {
		return nil, err
	}
	c.pkgs[path] = c.check(path, files, nil)
	return c.pkgs[path], nil
}

func (c *checker) check(path string, files []*ast.File, info *types.Info) *types.Package {
	conf := types.Config{
		FakeImportC: true,
		Importer:    c,
		Error:       func(error) {}, // expected: see checker
	}
	pkg, _ := conf.Check(path, c.fset, files, info)
	return pkg
}

// products finds the unrounded products of one package's files.
func (c *checker) products(files []*ast.File) []string {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	c.check("p", files, info)
	var bad []string
	for _, f := range files {
		excused := excusedLines(c.fset, f)
		walkWithParent(f, func(n, parent ast.Node) {
			pos, isProduct := product(info, n)
			if !isProduct || safeUse(info, n, parent) || excused[c.fset.Position(pos).Line] {
				return
			}
			p := c.fset.Position(pos)
			bad = append(bad, fmt.Sprintf("%s:%d:%d: float product may be contracted into an addition: write float32(a*b) or float64(a*b)", p.Filename, p.Line, p.Column))
		})
	}
	return bad
}

func excusedLines(fset *token.FileSet, f *ast.File) map[int]bool {
	lines := map[int]bool{}
	for _, g := range f.Comments {
		for _, c := range g.List {
			if strings.HasPrefix(c.Text, inexact) && len(c.Text) > len(inexact) {
				line := fset.Position(c.Pos()).Line
				lines[line], lines[line+1] = true, true
			}
		}
	}
	return lines
}

// product reports whether n computes a float product that is not a constant.
func product(info *types.Info, n ast.Node) (token.Pos, bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		tv := info.Types[n]
		return n.OpPos, n.Op == token.MUL && tv.Value == nil && isFloat(tv.Type)
	case *ast.AssignStmt:
		return n.TokPos, n.Tok == token.MUL_ASSIGN && isFloat(info.Types[n.Lhs[0]].Type)
	}
	return token.NoPos, false
}

// isFloat is true for float types, complex types, and type parameters that may be floats.
func isFloat(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := t.(*types.TypeParam); ok {
		return anyFloat(p.Constraint().Underlying().(*types.Interface))
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0
}

func anyFloat(i *types.Interface) bool {
	for k := range i.NumEmbeddeds() {
		switch e := i.EmbeddedType(k).(type) {
		case *types.Union:
			for j := range e.Len() {
				if isFloat(e.Term(j).Type()) {
					return true
				}
			}
		default:
			if in, ok := e.Underlying().(*types.Interface); ok && anyFloat(in) || isFloat(e) {
				return true
			}
		}
	}
	return false
}

func safeUse(info *types.Info, n, parent ast.Node) bool {
	switch p := parent.(type) {
	case *ast.CallExpr:
		if len(p.Args) != 1 || ast.Unparen(p.Args[0]) != n {
			return false
		}
		if info.Types[p.Fun].IsType() {
			return true // a conversion rounds, or leaves the float types
		}
		sel, ok := p.Fun.(*ast.SelectorExpr)
		return ok && (sel.Sel.Name == "Float32bits" || sel.Sel.Name == "Float64bits")
	case *ast.BinaryExpr:
		switch p.Op {
		case token.MUL, token.QUO, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	}
	return false
}

// walkWithParent visits every node with its nearest ancestor that is not a
// pair of parentheses.
func walkWithParent(root ast.Node, visit func(n, parent ast.Node)) {
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		var parent ast.Node
		if len(stack) > 0 {
			parent = stack[len(stack)-1]
		}
		visit(n, parent)
		if _, ok := n.(*ast.ParenExpr); ok {
			n = parent
		}
		stack = append(stack, n)
		return true
	})
}
