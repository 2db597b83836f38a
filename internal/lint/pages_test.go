package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// markdown is every page at the root and under docs, by path from the root.
func markdown(t *testing.T) (root string, pages map[string]string) {
	t.Helper()
	root, pages = sourceTree(t).Root, map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err == nil {
		err = filepath.WalkDir(filepath.Join(root, "docs"), func(p string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".md") {
				files = append(files, p)
			}
			return err
		})
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(root, f)
		pages[filepath.ToSlash(rel)] = string(data)
	}
	return root, pages
}

// TestPages: pages under docs, except docs/lab, are short.
func TestPages(t *testing.T) {
	_, pages := markdown(t)
	for name, text := range pages {
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/lab/") {
			continue
		}
		for _, msg := range checkPage(text) {
			t.Errorf("%s: %s", name, msg)
		}
	}
}

// TestLinks: relative links of the documents lead to files and headings.
func TestLinks(t *testing.T) {
	root, pages := markdown(t)
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^):]*))?\)`)
	inLine := regexp.MustCompile("`[^`\n]*`") // a signature may look like a link
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(inLine.ReplaceAllString(fenced.ReplaceAllString(text, ""), ""), -1) {
			to := name
			if m[1] != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(name), m[1]))
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if m[2] != "" && !anchors(pages[to])[m[2]] {
				t.Errorf("%s links to %s#%s, and no heading has that name", name, m[1], m[2])
			}
		}
	}
}

func TestCheckPage(t *testing.T) {
	cases := []struct{ text, want string }{
		{"# Head\n\nText.\n", ""},
		{strings.Repeat("\n", maxPage+1), "split it"},
		{strings.Repeat("x", maxLine+1), "161 characters"},
		{"| " + strings.Repeat("x", maxLine) + " |", ""},
		{strings.Repeat("text\n", maxParagraph), ""},
		{strings.Repeat("text\n", maxParagraph+1), "line 9: a paragraph"},
		{strings.Repeat("- item\n", maxParagraph+1), ""},
		{"```\n" + strings.Repeat("code\n", maxParagraph+1) + "```\n", ""},
	}
	for _, c := range cases {
		expect(t, checkPage(c.text), c.want)
	}
	got := anchors("# Plain\n\n## Missed, or not measured\n\n```\n# no heading\n```\n")
	if len(got) != 2 || !got["plain"] || !got["missed-or-not-measured"] {
		t.Errorf("anchors %v", got)
	}
}
