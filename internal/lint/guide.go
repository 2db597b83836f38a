package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// guide is the part of a package comment that says what the package is given, what it makes, and
// which file to read first. first is that of comments for users.
var (
	guide = regexp.MustCompile(`(?s)(?:^|\n\n)Input: .+?\sOutput: .+?\bRead\s(\S+\.go)\sfirst\b`)
	first = regexp.MustCompile(`\n\nOf the source, read\s(\S+\.go)\sfirst\.`)
)

// forUsers are packages whose comment is for users, besides those of public.
var forUsers = map[string]bool{"cmd/fusebench": true, "runtime/opengl": true, "runtime/vulkan": true, "runtime/webgpu": true}

// CheckGuides finds package comments that are not in doc.go (main.go for commands), and those that
// do not name input, output and an existing file to read first. Comments for users need only the
// file. Programs of examples/ and bench/ are exempt.
func (t *Tree) CheckGuides() []string {
	var bad []string
	for _, dir := range t.Dirs() {
		pkg := t.Pkgs[dir]
		if onlyTests(pkg) || strings.HasPrefix(dir, "examples/") || strings.HasPrefix(dir, "bench/") {
			continue
		}
		for _, f := range pkg.Files {
			if f.Test || f.Ignore || f.AST.Doc == nil {
				continue
			}
			base, want := path.Base(f.Path), "doc.go"
			if f.AST.Name.Name == "main" {
				want = "main.go"
			}
			if base != want {
				bad = append(bad, fmt.Sprintf("%s: move the package comment to %s", f.Path, want))
			}
			form, say := guide, "Input: …. Output: …. Read FILE.go first."
			if public[dir] || forUsers[dir] {
				form, say = first, "Of the source, read FILE.go first."
			}
			m := form.FindStringSubmatch(f.AST.Doc.Text())
			switch {
			case m == nil:
				bad = append(bad, fmt.Sprintf("%s: the package comment needs a paragraph %q", f.Path, say))
			case !slices.ContainsFunc(pkg.Files, func(g *File) bool { return path.Base(g.Path) == m[1] }):
				bad = append(bad, fmt.Sprintf("%s: says to read %s first, which does not exist", f.Path, m[1]))
			}
		}
	}
	return bad
}
