package lint

import (
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestEnglish finds phrases that have to be read twice, in comments, on pages and in texts of errors.
func TestEnglish(t *testing.T) {
	_, pages := markdown(t)
	found := sourceTree(t).English(pages)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s: phrases that have to be read twice:\n%s", dir, strings.Join(found[dir], "\n"))
	}
}

func TestCheckEnglish(t *testing.T) {
	for text, want := range map[string]int{
		"The plan has the result be written.":                       1,
		"It has to be written.":                                     0,
		"What waits for a division fills the queue.":                1,
		"What is a stream? It is a list.":                           0,
		"It fails: who reads it gets an error":                      0,
		"It is fast. Whoever reads it waits.":                       1,
		"dearest finds the dear ones":                               2,
		"It is cut so that it fits, so that nothing is lost.":       1,
		"It is cut so that it fits. So that comes first.":           0,
		"Nobody who asks: somebody reads it.":                       1,
		"Results lie in the device's memory.":                       1,
		"The point lies between them.":                              0,
		"That is what the kernel has to do":                         1,
		"Heading:\n\n    has it be code\n\nand text that is plain.": 0,
		"| a table has it be code |\n":                              0,
	} {
		if bad := checkEnglish(prose(text), phrases); len(bad) != want {
			t.Errorf("%q: %d phrases, want %d: %q", text, len(bad), want, bad)
		}
	}
}

func TestErrorEnglish(t *testing.T) {
	const head = "package p\n\nimport (\n\t\"errors\"\n\t\"fmt\"\n)\n\ntype e struct{ dev device }\n\n"
	for code, want := range map[string]int{
		`var _ = errors.New("the tensor is no matrix")`:                            1,
		`var _ = errors.New("the tensor is not a matrix")`:                         0,
		`var _ = errors.New("there is no file")`:                                   0,
		`var _ = errors.New("shaders are no longer used")`:                         0,
		`var _ = errors.New("%q is " + "no name")`:                                 1,
		`var _ = fmt.Errorf("%w: what was given is negative", nil)`:                1,
		`var _ = fmt.Errorf("%w: nobody says why", nil)`:                           1,
		`var _ = fmt.Errorf("%d tensors for %d results", 1, 2)`:                    1,
		`var _ = fmt.Errorf("%d tensors were given for %d results", 1, 2)`:         0,
		`var _ = fmt.Errorf("%d args and %d scalars for a kernel of %d", 1, 2, 3)`: 1,
		`var _ = fmt.Errorf("a dear value: %v", "is no operand")`:                  2,
		`func (x e) f() { x.dev.errorf("it was asked for in vain") }`:              2,
		`func (x e) f() { x.say("it was asked for") }`:                             0,
		`func f() { errorf("%v, and weights for %d features", 1, 2) }`:             1,
		`func f() { errorf("%v does not fit weights for %d features", 1, 2) }`:     0,
		`func f() { errorf("loading %s: %w", "a file", nil) }`:                     1,
		`func f() { errorf("loading %s: %w", "a", nil) }`:                          0,
		`var _ = errors.New("singular matrix")`:                                    0,
		`func (x e) Error() string { return "it is to be written" }`:               1,
		`func (x e) String() string { return "it is to be written" }`:              0,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", head+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		tree := &Tree{Fset: fset}
		if bad := tree.errorEnglish(&File{Path: "p.go", AST: f}); len(bad) != want {
			t.Errorf("%s: %d phrases, want %d: %q", code, len(bad), want, bad)
		}
	}
}
