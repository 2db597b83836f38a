package lint

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// sourceTree loads the module of this package.
func sourceTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTree(t *testing.T) {
	tree := sourceTree(t)
	rules := []struct {
		name  string
		check func() []string
	}{
		{"Ranks", tree.CheckRanks},
		{"Rooms", tree.CheckRooms},
		{"Walls", tree.CheckWalls},
		{"Downloads", tree.CheckDownloads},
		{"Format", tree.CheckFormat},
		{"RuntimeName", tree.CheckRuntimeName},
		{"Leftovers", tree.CheckLeftovers},
		{"Docs", tree.CheckDocs},
		{"Guides", tree.CheckGuides},
		{"TestCaches", tree.CheckTestCaches},
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, msg := range r.check() {
				t.Error(msg)
			}
		})
	}
}

// TestNested applies to nested modules the rules that do not depend on this module's packages.
func TestNested(t *testing.T) {
	nested, err := NestedModules(sourceTree(t).Root)
	if err != nil {
		t.Fatal(err)
	}
	if len(nested) == 0 {
		t.Error("no nested modules found")
	}
	for _, dir := range nested {
		tree, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, check := range []func() []string{tree.CheckFormat, tree.CheckRuntimeName, tree.CheckLeftovers, tree.CheckDocs, tree.CheckTestCaches} {
			for _, msg := range check() {
				t.Errorf("%s: %s", filepath.Base(dir), msg)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	root := sourceTree(t).Root
	nested, err := NestedModules(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(nested, root) {
		bad, err := CheckFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, msg := range bad {
			t.Error(msg)
		}
	}
}

// TestFloatProducts covers the packages whose Go code computes tensors' values.
func TestFloatProducts(t *testing.T) {
	tree := sourceTree(t)
	for _, top := range []string{"ir", "runtime/cpu"} {
		err := filepath.WalkDir(filepath.Join(tree.Root, top), func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if d.Name() == "testdata" {
				return filepath.SkipDir
			}
			rel, err := filepath.Rel(tree.Root, p)
			if err != nil {
				return err
			}
			bad, err := FloatProducts(tree.Root, rel)
			for _, msg := range bad {
				t.Error(msg)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
