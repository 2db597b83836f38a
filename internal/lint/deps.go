package lint

import (
	"fmt"
	"slices"
	"strings"
)

// hashModule is the only download of an importer of the root package besides this module.
const hashModule = "github.com/cespare/xxhash/v2"

// outside reports whether an import path belongs neither to the standard library nor to this
// module.
func outside(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	if _, own := folder(importPath); own {
		return false
	}
	return strings.Contains(first, ".")
}

// closure lists the folders that a package needs, itself included, without tests, in order of
// discovery.
func (t *Tree) closure(dir string) []string {
	list := []string{dir}
	for i := 0; i < len(list); i++ {
		pkg := t.Pkgs[list[i]]
		if pkg == nil {
			continue
		}
		for _, im := range pkg.Imports(false) {
			if to, ok := folder(im); ok && !slices.Contains(list, to) {
				list = append(list, to)
			}
		}
	}
	return list
}

// CheckTestCaches finds packages whose tests open devices through the root package without the
// import, their own or a helper's, that disables the user's cache.
func (t *Tree) CheckTestCaches() []string {
	const nocache = "internal/testing/nocache"
	var bad []string
	for _, dir := range t.Dirs() {
		opens, disables := false, false
		for _, im := range t.Pkgs[dir].Imports(true) {
			to, own := folder(im)
			opens = opens || to == "."
			disables = disables || own && slices.Contains(t.closure(to), nocache)
		}
		disables = disables || slices.Contains(t.closure(dir), nocache)
		if opens && !disables {
			bad = append(bad, fmt.Sprintf("%s: its tests may use the user's cache: import %s/%s for its side effect", dir, Module, nocache))
		}
	}
	return bad
}

// CheckDownloads finds imports that would make `go get` or `go mod tidy` of an importer of the root
// package download more than xxhash: in the packages that the root package needs, and in those of
// their tests. (The go command reads tests of dependencies when it tidies; see
// docs/rationale/module.md.)
func (t *Tree) CheckDownloads() []string {
	var bad []string
	report := func(dir, why string) {
		for _, im := range t.Pkgs[dir].Imports(false) {
			if outside(im) && im != hashModule {
				bad = append(bad, fmt.Sprintf("%s imports %s%s", dir, im, why))
			}
		}
	}
	user := t.closure(".")
	for _, dir := range user {
		if t.Pkgs[dir] == nil {
			continue
		}
		report(dir, ": the root package needs it, and may need nothing but xxhash")
		for _, im := range t.Pkgs[dir].Imports(true) {
			if outside(im) && im != hashModule {
				bad = append(bad, fmt.Sprintf("the tests of %s import %s: put them in a package that no user-facing package imports", dir, im))
			}
			to, ok := folder(im)
			if !ok || slices.Contains(user, to) {
				continue
			}
			for _, dep := range t.closure(to) {
				if t.Pkgs[dep] != nil && !slices.Contains(user, dep) {
					report(dep, ": the tests of "+dir+" need it")
				}
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}
