package lint

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace-go/millrace/internal/debugflag"
)

// TestArchitectureRanks: the table of docs/architecture.md equals the enforced one, and lists
// existing packages.
func TestArchitectureRanks(t *testing.T) {
	text := doc(t, "architecture.md")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`)
	written := map[string]int{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		rank, _ := strconv.Atoi(m[1])
		for pkg := range strings.SplitSeq(m[2], ", ") {
			written[pkg] = rank
		}
	}
	if !maps.Equal(written, ranks) {
		t.Errorf("docs/architecture.md says %v, rank.go says %v", written, ranks)
	}
	tree := sourceTree(t)
	for _, dir := range slices.Concat(slices.Collect(maps.Keys(ranks)), slices.Collect(maps.Keys(drivers))) {
		if tree.Pkgs[dir] == nil {
			t.Errorf("rank.go lists %s, which there is not", dir)
		}
	}
}

// TestRooms: the table of docs/architecture/cpu.md equals the enforced one, and lists existing rooms.
func TestRooms(t *testing.T) {
	written := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (\w+) \|`).FindAllStringSubmatch(doc(t, "architecture/cpu.md"), -1) {
		written[m[2]], _ = strconv.Atoi(m[1])
	}
	if !maps.Equal(written, rooms) {
		t.Errorf("docs/architecture/cpu.md says %v, rank.go says %v", written, rooms)
	}
	for room := range rooms {
		if sourceTree(t).Pkgs[roomsDir+room] == nil {
			t.Errorf("rank.go lists %s, which there is not", room)
		}
	}
}

// TestDebuggingKeys: docs/debugging.md lists every key of MILLRACE_DEBUG with its help text.
func TestDebuggingKeys(t *testing.T) {
	text := doc(t, "debugging.md")
	for _, k := range debugflag.Keys() {
		name := k.Name
		if k.TakesValue {
			name += "=FILE"
		}
		if line := "| `" + name + "` | " + k.Help + " |"; !strings.Contains(text, line) {
			t.Errorf("docs/debugging.md lacks the line\n%s", line)
		}
	}
}

// inner are variables that processes of this module set for each other, with the reason.
var inner = map[string]string{
	"MILLRACE_ISOLATED": "marks the process that a driver runs in",
	"MILLRACE_SUITE":    "tells a process that a test starts what to run on",
}

// TestEnvironmentTable: docs/options.md has a row for every variable that code reads, and for no
// other.
func TestEnvironmentTable(t *testing.T) {
	text, written := doc(t, "options.md"), map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range envVar.FindAllString(m[1], -1) {
			written[name] = true
		}
	}
	for name := range facts(t).Env {
		if !written[name] && inner[name] == "" && !strings.HasPrefix(name, "MILLRACE_TEST_") {
			t.Errorf("docs/options.md has no row for %s", name)
		}
	}
	for name := range written {
		if !facts(t).Env[name] {
			t.Errorf("docs/options.md has a row for %s, which nobody reads", name)
		}
	}
}

func doc(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sourceTree(t).Root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDocsIndex: docs/README.md links to every page of docs, of its guides and about it.
func TestDocsIndex(t *testing.T) {
	text, dir := doc(t, "README.md"), filepath.Join(sourceTree(t).Root, "docs")
	for _, pattern := range []string{"*.md", "guides/*.md", "about/*.md"} {
		pages, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(pages) == 0 {
			t.Errorf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, p := range pages {
			name, _ := filepath.Rel(dir, p)
			if name = filepath.ToSlash(name); name != "README.md" && !strings.Contains(text, "]("+name+")") {
				t.Errorf("docs/README.md does not link to %s", name)
			}
		}
	}
}

// TestExamplesIndex: examples/README.md links to every example.
func TestExamplesIndex(t *testing.T) {
	root := sourceTree(t).Root
	text, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && !strings.Contains(string(text), "["+name+"]("+name+")") {
			t.Errorf("examples/README.md does not name %s", name)
		}
	}
}
