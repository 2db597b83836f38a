package lint

import (
	"fmt"
	"strings"
)

// forTests is the folder of packages that only tests import.
const forTests = "internal/testing/"

// stays are exceptions: the linter is a test itself.
var stays = map[string]bool{"internal/lint": true}

// CheckWalls finds packages in the wrong part of the tree: a package that only tests import and
// that is not below internal/testing, one below internal/testing that other code imports, and a
// helper below internal that imports the root package.
func (t *Tree) CheckWalls() []string {
	var bad []string
	byTests, byCode := t.importers(true), t.importers(false)
	for _, dir := range t.Dirs() {
		if onlyTests(t.Pkgs[dir]) {
			continue
		}
		helper, nested := strings.HasPrefix(dir, "internal/"), strings.Contains(dir, "/internal/")
		switch {
		case strings.HasPrefix(dir, forTests):
			for _, by := range byCode[dir] {
				support := len(byCode[by]) == 0 && len(byTests[by]) > 0 // a driver's own test package
				if !strings.HasPrefix(by, forTests) && !support && !program(by) && !stays[by] {
					bad = append(bad, fmt.Sprintf("%s imports %s, which is for tests", by, dir))
				}
			}
			continue
		case stays[dir] || t.isProgram(dir):
			continue
		case helper && len(byCode[dir]) == 0 && len(byTests[dir]) > 0:
			bad = append(bad, fmt.Sprintf("%s: only tests import it: it belongs below %s", dir, forTests))
		}
		if helper && !nested {
			for _, im := range t.Pkgs[dir].Imports(false) {
				if im == Module {
					bad = append(bad, fmt.Sprintf("%s imports the root package: helpers stand below it", dir))
				}
			}
		}
	}
	return bad
}

// importers lists, for each folder, the folders whose tests, or whose other files, import it.
func (t *Tree) importers(tests bool) map[string][]string {
	by := map[string][]string{}
	for _, dir := range t.Dirs() {
		for _, im := range t.Pkgs[dir].Imports(tests) {
			if to, ok := folder(im); ok && to != dir {
				by[to] = append(by[to], dir)
			}
		}
	}
	return by
}

// isProgram reports whether a folder is a command.
func (t *Tree) isProgram(dir string) bool {
	return t.Pkgs[dir].Files[0].AST.Name.Name == "main"
}
