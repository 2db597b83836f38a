package lint

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	showEnglish   = flag.String("english", "", "print the phrases of a folder that have to be read twice; \"all\" for every folder")
	lessenEnglish = flag.Bool("english-lessen", false, "write fewer phrases into testdata/english.txt where there are fewer")
)

// TestEnglish compares each folder with the number of phrases in testdata/english.txt, which may
// only decrease. A folder that is not listed has none.
func TestEnglish(t *testing.T) {
	tree := sourceTree(t)
	_, pages := markdown(t)
	found := tree.English(pages)
	allowed := allowedEnglish(t)
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		if *showEnglish == dir || *showEnglish == "all" {
			fmt.Println(strings.Join(found[dir], "\n"))
		}
		if n := len(found[dir]); n > allowed[dir] {
			t.Errorf("%s: %d phrases that have to be read twice, where %d are allowed: go test ./internal/lint -run TestEnglish -english %s", dir, n, allowed[dir], dir)
		}
	}
	if *lessenEnglish {
		var b strings.Builder
		for _, dir := range slices.Sorted(maps.Keys(allowed)) {
			if n := min(len(found[dir]), allowed[dir]); n > 0 {
				fmt.Fprintf(&b, "%s %d\n", dir, n)
			}
		}
		if err := os.WriteFile("testdata/english.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func allowedEnglish(t *testing.T) map[string]int {
	t.Helper()
	f, err := os.Open("testdata/english.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	allowed := map[string]int{}
	for s := bufio.NewScanner(f); s.Scan(); {
		var dir string
		var n int
		if _, err := fmt.Sscan(s.Text(), &dir, &n); err != nil {
			t.Fatalf("testdata/english.txt: %q: %v", s.Text(), err)
		}
		allowed[dir] = n
	}
	return allowed
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
		if bad := checkEnglish(prose(text)); len(bad) != want {
			t.Errorf("%q: %d phrases, want %d: %q", text, len(bad), want, bad)
		}
	}
}
