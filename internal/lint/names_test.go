package lint

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	// used is a capitalised name, with what stands before its point: a package, a
	// variable or the end of a call.
	used = regexp.MustCompile(`(?:\b([a-z]\w*)\.|(\)\.)|)\b([A-Z]\w*)`)
)

// unknownNames are the names in code spans that there are not. Bare ones are
// looked for in the root package, pkg.Name in that package, x.Name and the
// like among a tensor's methods, and those of other variables, such as
// step.Run, among all methods.
func unknownNames(text string, pkgs map[string]exported) []string {
	var bad []string
	for _, span := range codeSpan.FindAllString(text, -1) {
		for _, m := range used.FindAllStringSubmatch(span, -1) {
			pkg, isPkg := pkgs[m[1]]
			ok := false
			switch {
			case isPkg && m[2] == "":
				ok = pkg.decls[m[3]]
			case m[2] != "" || len(m[1]) == 1 || m[1] == "mask":
				ok = pkgs[""].methods["Tensor"][m[3]]
			default:
				for _, p := range pkgs {
					for _, of := range p.methods {
						ok = ok || of[m[3]]
					}
				}
			}
			if !ok {
				bad = append(bad, m[0]+" in "+span)
			}
		}
	}
	return bad
}

// TestComingFrom: the names in the last column of the tables of
// docs/coming-from.md are exported.
func TestComingFrom(t *testing.T) {
	pkgs := map[string]exported{}
	for dir, pkg := range sourceTree(t).Pkgs {
		if dir == "." {
			pkgs[""] = exportedOf(pkg.Files)
		} else if !strings.Contains(dir, "internal") && !strings.Contains(dir, "/") {
			pkgs[path.Base(dir)] = exportedOf(pkg.Files)
		}
	}
	cells, codes := 0, 0
	for line := range strings.SplitSeq(doc(t, "coming-from.md"), "\n") {
		row := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") || len(row) < 2 {
			continue
		}
		cells++
		last := row[len(row)-1]
		codes += len(codeSpan.FindAllString(last, -1))
		for _, bad := range unknownNames(last, pkgs) {
			t.Errorf("docs/coming-from.md: there is no %s", bad)
		}
	}
	if cells < 50 || codes < cells/2 {
		t.Errorf("%d rows with %d pieces of code: is the table written otherwise?", cells, codes)
	}
}

func TestUnknownNames(t *testing.T) {
	root := exported{map[string]bool{"Zeros": true, "Float32": true}, map[string]map[string]bool{
		"Tensor": {"Sum": true}, "Device": {"Stats": true},
	}}
	pkgs := map[string]exported{"": root, "nn": {decls: map[string]bool{"Save": true}}}
	for text, want := range map[string][]string{
		"`Zeros(Float32, 2)`, `x.Sum()`, `nn.Save(f, m)`, `dev.Stats()`, `x.Sum().Sum()`": nil,
		"Prose, `Ones()`":               {"Ones in `Ones()`"},
		"`x.Stats()`, `dev.Load()`":     {"x.Stats in `x.Stats()`", "dev.Load in `dev.Load()`"},
		"`nn.Zeros()`, `x.Sum().Max()`": {"nn.Zeros in `nn.Zeros()`", ").Max in `x.Sum().Max()`"},
	} {
		if got := unknownNames(text, pkgs); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (of %v)", text, got, want, slices.Collect(maps.Keys(pkgs)))
		}
	}
}
