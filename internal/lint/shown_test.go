package lint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// looksGo matches a line that is Go, in a block that is not marked so.
var looksGo = regexp.MustCompile(`(?m)^\s*(import (_ )?"|func \w|\w+(, \w+)* := |fmt\.Print|err = )`)

// TestShownCode: the Go code on the pages compiles.
func TestShownCode(t *testing.T) {
	root := sourceTree(t).Root
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []Shown
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		all = append(all, ShownGo(page, pages[page])...)
		for _, s := range Snippets(pages[page]) {
			if s.Block && s.Lang == "" && looksGo.MatchString(s.Text) {
				t.Errorf("%s:%d: mark the block as go, so that it is compiled", page, s.Line)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("%d blocks of Go found", len(all))
	}
	bad, err := Compile(root, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range bad {
		t.Error(err)
	}
}

// TestCompile: errors of shown code are found, with page and line.
func TestCompile(t *testing.T) {
	fence := func(code string) string { return "```go\n" + code + "\n```\n" }
	cases := []struct{ text, want string }{
		{fence("x := fmt.Sprint(1)"), ""}, // x need not be used in a fragment
		{fence("x := fmt.Sprin(1)"), "p.md:2: undefined: fmt.Sprin"},
		{fence("x := strconv.Itoa(y)"), "p.md:2: undefined: strconv"},
		{fence("import \"strconv\"\n\nx := strconv.Itoa(y)"), "p.md:4: undefined: y"},
		{"<!-- go: y int -->\n" + fence("import \"strconv\"\n\nx := strconv.Itoa(y)"), ""},
		{"<!-- go: y string -->\n" + fence("import \"strconv\"\n\nx := strconv.Itoa(y)"), "p.md:5: cannot use y"},
		{"<!-- go: y strin -->\n" + fence("z := y"), "p.md:1: undefined: strin"},
		{fence("type T struct {\n\tA int\n}\n\nfunc (t T) Add() int {\n\treturn t.A\n}\n\nx := T{}.Ad()"), "p.md:10: T{}.Ad undefined"},
		{fence("x = = 1"), "p.md:2: expected operand"},
		{fence("package main\n\nfunc main() {\n\tx := 1\n}"), "p.md:5: declared and not used: x"},
		{fence("package main\n\nimport _ \"example.com/none\"\n\nfunc main() {}"), ""},
		{fence("// a.go\npackage a\n\nconst C = 1") + fence("// b/main.go\npackage main\n\nimport \"m.com/a\"\n\nvar _ string = a.C\n\nfunc main() {}") +
			"```sh\ngo mod init m.com/a\n```\n", "p.md:13: cannot use a.C"},
	}
	for _, c := range cases {
		bad, err := Compile(sourceTree(t).Root, ShownGo("p.md", c.text))
		if err != nil {
			t.Errorf("%s\n%v", c.text, err)
			continue
		}
		if got := fmt.Sprint(bad); (c.want == "") != (len(bad) == 0) || !strings.Contains(got, c.want) {
			t.Errorf("%s\ngives %s, want %q", c.text, got, c.want)
		}
	}
}
