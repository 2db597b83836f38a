package lint

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
)

// Counts are numbers that show how simple the module is.
type Counts struct {
	RootFiles, RootFolders    int
	Written, Generated, Tests int      // lines of Go files; Tests includes packages that only tests import
	Narrow                    []string // hand-written files without tests that name a 16-bit dtype
}

// narrow are the names of 16-bit dtypes.
var narrow = map[string]bool{"Int16": true, "Uint16": true, "Float16": true, "BFloat16": true}

// Count counts the module's files and lines.
func (t *Tree) Count() Counts {
	var c Counts
	entries, _ := os.ReadDir(t.Root)
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' {
			c.RootFolders++
		}
	}
	byTests, byCode := t.importers(true), t.importers(false)
	for _, pkg := range t.Pkgs {
		// A program below a package, such as lint's, is no use of it by code.
		users := slices.DeleteFunc(slices.Clone(byCode[pkg.Dir]), func(by string) bool { return strings.HasPrefix(by, pkg.Dir+"/") && t.isProgram(by) })
		support := strings.HasPrefix(pkg.Dir, forTests) || len(users) == 0 && len(byTests[pkg.Dir]) > 0 && !public[pkg.Dir]
		for _, f := range pkg.Files {
			lines := bytes.Count(f.Src, []byte("\n"))
			if pkg.Dir == "." {
				c.RootFiles++
			}
			switch {
			case f.Test || support:
				c.Tests += lines
			case generated.Match(f.Src):
				c.Generated += lines
			default:
				c.Written += lines
				if namesAny(f.AST, narrow) {
					c.Narrow = append(c.Narrow, f.Path)
				}
			}
		}
	}
	slices.Sort(c.Narrow)
	return c
}

func namesAny(f *ast.File, names map[string]bool) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] {
			found = true
		}
		return !found
	})
	return found
}

// An Arrow says that a group of files uses names that another group declares.
type Arrow struct {
	From, To string
	Names    []string
}

// Groups are the groups of files of a package. A group has the files whose names begin with the
// same word: pool.go and pool_park.go.
type Groups struct {
	Arrows []Arrow
	Order  []string // the order of the groups with few arrows that run up
}

// Up counts the arrows from a group to one that stands above it.
func (g *Groups) Up() int {
	n := 0
	for _, a := range g.Arrows {
		if slices.Index(g.Order, a.From) > slices.Index(g.Order, a.To) {
			n++
		}
	}
	return n
}

func groupOf(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".go"), "_")
	return name
}

// Groups finds the arrows between a package's groups of files, without tests and generated files.
// Functions, types, variables and constants of the package are followed, and methods whose name no
// other type of the package has.
func (t *Tree) Groups(dir string) *Groups {
	declared, ambiguous := map[string]string{}, map[string]bool{}
	pkg := t.Pkgs[dir]
	files := slices.DeleteFunc(slices.Clone(pkg.Files), func(f *File) bool { return f.Test || f.Ignore || generated.Match(f.Src) })
	for _, f := range files {
		for _, name := range declarations(f.AST) {
			if was, ok := declared[name]; ok && was != groupOf(f.Path) {
				ambiguous[name] = true // a method of two types, or one declaration per platform
			}
			declared[name] = groupOf(f.Path)
		}
	}
	g := &Groups{}
	at := map[[2]string]int{}
	for _, f := range files {
		from := groupOf(f.Path)
		if !slices.Contains(g.Order, from) {
			g.Order = append(g.Order, from)
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			to := declared[id.Name]
			if to == "" || to == from || ambiguous[id.Name] {
				return true
			}
			i, ok := at[[2]string{from, to}]
			if !ok {
				i = len(g.Arrows)
				at[[2]string{from, to}] = i
				g.Arrows = append(g.Arrows, Arrow{From: from, To: to})
			}
			if a := &g.Arrows[i]; !slices.Contains(a.Names, id.Name) {
				a.Names = append(a.Names, id.Name)
			}
			return true
		})
	}
	slices.SortFunc(g.Arrows, func(a, b Arrow) int { return strings.Compare(a.From+" "+a.To, b.From+" "+b.To) })
	slices.Sort(g.Order)
	g.sort()
	return g
}

// declarations lists the names of a file that belong to the package: methods as "T.name" would be
// ambiguous in uses, so their names alone.
func declarations(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name != "init" {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						if id.Name != "_" {
							names = append(names, id.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// sort orders the groups such that few arrows run up: the greedy order of Eades, Lin and Smyth
// (1993). Groups that no other uses come first, those that use no other come last, and between them
// the group with the greatest surplus of arrows out of it.
func (g *Groups) sort() {
	left := slices.Clone(g.Order)
	var first, last []string
	degree := func(group string) (out, in int) {
		for _, a := range g.Arrows {
			if a.From == group && slices.Contains(left, a.To) {
				out++
			}
			if a.To == group && slices.Contains(left, a.From) {
				in++
			}
		}
		return out, in
	}
	for len(left) > 0 {
		best, surplus, sink := 0, -1<<30, false
		for i, group := range left {
			out, in := degree(group)
			if out == 0 {
				best, sink = i, true
				break
			}
			if in == 0 {
				out = 1 << 20
			}
			if out-in > surplus {
				best, surplus = i, out-in
			}
		}
		group := left[best]
		left = slices.Delete(left, best, best+1)
		if sink {
			last = append(last, group)
		} else {
			first = append(first, group)
		}
	}
	slices.Reverse(last)
	g.Order = append(first, last...)
}
