package lint

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Missing lists names on a page that do not exist: targets of make, steps of scripts/test.sh,
// packages, tests, flags of programs, files, environment variables, options of devices, and names
// of packages' functions, types, methods and fields. cmd/fusebench also checks the commands of
// fusebench.
func (f *Facts) Missing(page, text string) (bad []string) {
	made, own := map[string]bool{}, map[string]bool{}
	for _, m := range declared.FindAllStringSubmatch(text, -1) {
		own[m[1]] = true
	}
	for _, m := range written.FindAllStringSubmatch(text, -1) {
		made["./"+m[1]] = true
	}
	say := func(line int, format string, args ...any) {
		bad = append(bad, fmt.Sprintf("%s:%d: there is no ", page, line)+fmt.Sprintf(format, args...))
	}
	for i, l := range strings.Split(text, "\n") {
		for _, name := range envVar.FindAllString(l, -1) {
			if !f.Env[name] {
				say(i+1, "variable %s", name)
			}
		}
		for _, m := range debugKeys.FindAllStringSubmatch(l, -1) {
			if err := f.Debug(m[1]); err != nil {
				say(i+1, "such key: %v", err)
			}
		}
		for _, m := range files.FindAllStringSubmatch(l, -1) {
			if foreign[page] == "" && !f.exists(page, m[1]) {
				say(i+1, "file %s", m[1])
			}
		}
	}
	for _, s := range Snippets(text) {
		for _, c := range s.Commands() {
			if slices.ContainsFunc(c.Args, func(a string) bool { return made[a] }) {
				continue // of a program that the page tells its readers to write
			}
			for _, what := range f.command(c) {
				say(c.Line, "%s", what)
			}
		}
		if foreign[page] != "" {
			continue
		}
		for _, what := range f.code(page, s, own) {
			say(s.Line, "%s", what)
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// foreign are pages with mostly foreign names, with the reason.
var foreign = map[string]string{
	"docs/upstream.md":    "is about the code of other projects",
	"docs/coming-from.md": "is by the names of other libraries; ours, in the last column, are held by TestComingFrom",
}

var (
	// written begins a file that a page shows completely.
	written = regexp.MustCompile("(?m)^```go\n// (\\w+)/main\\.go$")
	// declared is a function that a page shows.
	declared  = regexp.MustCompile(`(?m)^func (?:\(.*?\) )?(\w+)\(`)
	debugKeys = regexp.MustCompile("MILLRACE_DEBUG=([a-z][^\\s`\"']*)")
	// files are file names with a folder, anywhere on the page.
	files = regexp.MustCompile(`(?:^|[\s(|"` + "`" + `])((?:\./|\.\./)*[a-z]\w*(?:/[\w.*-]+)*/[\w.*-]+\.(?:go|md|sh|py|c|h|S|json|svg|mod|work|wgsl|glsl))\b`)
	// folders are spans that name one.
	folders = regexp.MustCompile(`^(\./)?([a-z]\w*(/[\w.-]+)*)/?(\.\.\.)?$`)
	tag     = regexp.MustCompile(`/v\d+\.\d+\.\d+$`)
	goFile  = regexp.MustCompile(`^[\w*]+\.(go|sh)$`)
	module  = regexp.MustCompile(`(?:` + regexp.QuoteMeta(Module) + `|…)/([\w/]+)`)
	driver  = regexp.MustCompile(`\b(?:cpu|webgpu|opengl|vulkan|null):[a-z][\w=,./-]*`)
	option  = regexp.MustCompile(`^([a-z]+)=([\w./-]*)$`)
)

// exists says whether a file is there, from the root, from the page's folder, or from docs.
func (f *Facts) exists(page, name string) bool {
	from := []string{".", path.Dir(page), "docs"}
	if strings.HasPrefix(name, "testdata/") { // of the package that the page is about
		from = slices.AppendSeq(from, maps.Keys(f.Tests))
	}
	for _, from := range from {
		if found, _ := filepath.Glob(filepath.Join(f.Root, from, name)); len(found) > 0 {
			return true
		}
	}
	return !f.top(name)
}

// top says whether a path begins with a folder of the repository: others are files of
// whoever reads it.
func (f *Facts) top(name string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(name), "../"), "/")
	_, err := os.Stat(filepath.Join(f.Root, first))
	_, errDocs := os.Stat(filepath.Join(f.Root, "docs", first))
	return err == nil || errDocs == nil
}

// command finds what a command names and there is not.
func (f *Facts) command(c ShellCommand) (bad []string) {
	switch first := c.Args[0]; {
	case first == "make":
		for _, a := range c.Args[1:] {
			if !f.Targets[a] && !strings.Contains(a, "=") {
				bad = append(bad, "target of make called "+a)
			}
		}
	case first == "cd":
		if len(c.Args) > 1 && !f.isDir(path.Join(c.Dir, c.Args[1])) {
			bad = append(bad, "folder "+c.Args[1])
		}
	case first == "python3": // in the folder that it is started in
		if len(c.Args) > 1 && !f.exists(".", path.Join(c.Dir, c.Args[1])) {
			bad = append(bad, "file "+c.Args[1])
		}
	case strings.HasSuffix(first, "scripts/test.sh"):
		for _, a := range c.Args[1:] {
			if !f.Steps[a] && a != "check" {
				bad = append(bad, "step of scripts/test.sh called "+a)
			}
		}
	case first == "go" && len(c.Args) > 1:
		bad = f.goCommand(c)
	}
	return bad
}

func (f *Facts) isDir(name string) bool {
	st, err := os.Stat(filepath.Join(f.Root, name))
	return err == nil && st.IsDir()
}

// valued are flags of the go command whose value is the next argument.
var valued = map[string]bool{
	"-run": true, "-bench": true, "-benchtime": true, "-count": true, "-timeout": true, "-tags": true, "-o": true, "-skip": true,
	"-fuzz": true, "-fuzztime": true, "-cpu": true, "-parallel": true, "-cpuprofile": true, "-memprofile": true, "-exec": true, "-C": true,
}

// plainFlags are flags of go test without a value.
var plainFlags = map[string]bool{"-v": true, "-race": true, "-short": true, "-benchmem": true, "-cover": true, "-failfast": true, "-json": true, "-c": true, "-list": true}

// goCommand is of go test, go run and the like: their packages, what -run and -bench
// match, and the flags of a program.
func (f *Facts) goCommand(c ShellCommand) (bad []string) {
	args := c.Args[1:]
	if args[0] == "-C" && len(args) > 2 {
		c.Dir, args = path.Join(c.Dir, args[1]), args[2:]
	}
	verb, args := args[0], args[1:]
	values := map[string]string{}
	var dirs []string
	own := "" // a flag of the test: go test leaves the arguments after it to the test
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case strings.HasPrefix(a, "-"):
			name, value, has := strings.Cut(a, "=")
			if !has && valued[name] && i+1 < len(args) {
				i++
				value = args[i]
			}
			values[name] = value
			if verb == "test" && !has && !valued[name] && !plainFlags[name] {
				own = name
			}
			continue
		case !strings.HasPrefix(a, "."):
			continue // a program, a file, an argument
		}
		if own != "" {
			bad = append(bad, fmt.Sprintf("package before %s: go test does not test %s", own, a))
		}
		found := f.packages(path.Join(c.Dir, a))
		if len(found) == 0 {
			bad = append(bad, "package "+a)
		}
		dirs = append(dirs, found...)
		if verb == "run" {
			return append(bad, f.programFlags(path.Join(c.Dir, a), args[i+1:])...)
		}
	}
	if len(dirs) == 0 {
		dirs = []string{c.Dir}
	}
	if verb != "test" || len(bad) > 0 {
		return bad
	}
	_, benched := values["-bench"]
	for _, w := range []struct{ flag, kinds string }{{"-run", "Test|Example|Fuzz"}, {"-bench", "Benchmark"}, {"-fuzz", "Fuzz"}} {
		pattern, has := values[w.flag]
		if has && !(w.flag == "-run" && benched) && !f.matches(dirs, w.kinds, pattern) {
			bad = append(bad, fmt.Sprintf("test that go test %s %s matches", w.flag, pattern))
		}
	}
	return bad
}

// packages are the folders that a pattern of the go command stands for.
func (f *Facts) packages(pattern string) (dirs []string) {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok || pattern == "..." {
		for dir := range f.Tests {
			if pattern == "..." || dir == below || strings.HasPrefix(dir, below+"/") {
				dirs = append(dirs, dir)
			}
		}
		return dirs
	}
	if f.Tests[pattern] != nil {
		return []string{pattern}
	}
	return nil
}

// matches says whether a pattern of -run or -bench finds something. Parts behind a slash
// are looked for among all words of the source, as subtests have their names at run time.
func (f *Facts) matches(dirs []string, kinds, pattern string) bool {
	first, rest, _ := strings.Cut(pattern, "/")
	re, err := regexp.Compile(first)
	if err != nil {
		return false
	}
	kind := regexp.MustCompile("^(" + kinds + ")")
	found := slices.ContainsFunc(dirs, func(dir string) bool {
		return slices.ContainsFunc(f.Tests[dir], func(name string) bool { return kind.MatchString(name) && re.MatchString(name) })
	})
	if !found || rest == "" {
		return found
	}
	for part := range strings.SplitSeq(rest, "/") {
		sub, err := regexp.Compile(part)
		if err != nil {
			return false
		}
		some := false
		for word := range f.Words {
			some = some || sub.MatchString(word)
		}
		if !some {
			return false
		}
	}
	return true
}

// programFlags finds flags that a program of the repository does not have. fusebench's are
// checked in its own tests.
func (f *Facts) programFlags(dir string, args []string) (bad []string) {
	if dir == "cmd/fusebench" || dir == "." || f.Tests[dir] == nil { // "." is a program of whoever reads it
		return nil
	}
	for _, a := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if strings.HasPrefix(a, "-") && !f.Flags[dir][name] && name != "h" {
			bad = append(bad, fmt.Sprintf("flag -%s of ./%s", name, dir))
		}
	}
	return bad
}

// code finds names of code that there are not.
func (f *Facts) code(page string, s Snippet, own map[string]bool) (bad []string) {
	text := s.Text
	for _, m := range module.FindAllStringSubmatch(text, -1) {
		if f.Tests[m[1]] == nil && !f.isDir(m[1]) {
			bad = append(bad, "package "+m[0])
		}
	}
	for _, name := range driver.FindAllString(text, -1) {
		if err := f.Option(strings.TrimRight(name, ".,")); err != nil {
			bad = append(bad, fmt.Sprintf("option as in %s: %v", name, err))
		}
	}
	if !s.Block {
		bad = append(bad, f.spanned(page, text)...)
	}
	if !s.Block || s.Lang == "go" {
		bad = append(bad, f.names(text, own)...)
	}
	return bad
}

// spanned is of spans that are nothing but an option, a folder or a file.
func (f *Facts) spanned(page, text string) (bad []string) {
	if m := option.FindStringSubmatch(text); m != nil && f.Debug(text) != nil {
		// Where no value is given the key alone is meant.
		if err := f.Option("cpu:" + text); err != nil && (m[2] != "" || f.noKey(m[1], err)) {
			bad = append(bad, fmt.Sprintf("option %s: %v", text, err))
		}
	}
	if m := folders.FindStringSubmatch(text); m != nil && !tag.MatchString(text) && strings.Contains(text, "/") && f.top(m[2]) && !f.exists(page, m[2]) {
		bad = append(bad, "folder "+text)
	}
	if goFile.MatchString(text) && !f.anywhere(text) {
		bad = append(bad, "file "+text)
	}
	return bad
}

// noKey says whether it is the key that an option is refused for: an option that there is
// not is refused whatever its value.
func (f *Facts) noKey(key string, err error) bool {
	unknown := f.Option("cpu:nosuchkey=")
	return unknown != nil && err.Error() == strings.ReplaceAll(unknown.Error(), "nosuchkey", key)
}

// anywhere says whether some folder with Go files, or scripts, has a file of that name.
func (f *Facts) anywhere(name string) bool {
	for dir := range f.Tests {
		if found, _ := filepath.Glob(filepath.Join(f.Root, dir, name)); len(found) > 0 {
			return true
		}
	}
	found, _ := filepath.Glob(filepath.Join(f.Root, "scripts", name))
	if len(found) > 0 {
		return true
	}
	for word := range f.Words { // generated where a program says
		if strings.HasPrefix(word, "z_") && strings.HasPrefix(name, word) {
			return true
		}
	}
	return false
}

var (
	// selected is X.Y, with what follows of a chain such as X.Y.Z.
	selected = regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	bare     = regexp.MustCompile(`^([A-Z][a-z]\w*)(\(.*\))?$`)
)

// names finds pkg.Name, Type.Member and x.Method that there are not.
func (f *Facts) names(text string, own map[string]bool) (bad []string) {
	for _, m := range selected.FindAllStringSubmatch(text, -1) {
		x, name := m[1], m[2]
		decls, members := f.Decls[x], f.Members[x]
		switch {
		case public[x] || x == "millrace":
			if !decls[name] {
				bad = append(bad, x+"."+name)
			} else if m[3] != "" && f.Members[name] != nil && !f.Members[name][m[3]] {
				bad = append(bad, m[0])
			}
		case decls != nil: // or a variable of that name
			if !decls[name] && !f.AllMembers[name] && !inStandard(x, name) {
				bad = append(bad, x+"."+name)
			}
		case members != nil && x[0] <= 'Z':
			if !members[name] && !f.ofField(x, name) {
				bad = append(bad, x+"."+name)
			}
		case !f.Words[name] && !own[name]:
			bad = append(bad, fmt.Sprintf("%s, anywhere, as in %s", name, m[0]))
		}
	}
	if m := bare.FindStringSubmatch(text); m != nil && !f.Words[m[1]] {
		bad = append(bad, "name "+m[1])
	}
	return bad
}

// ofField says whether a field that has the name of a type has a member.
func (f *Facts) ofField(field, name string) bool {
	for typ := range f.FieldTypes[field] {
		if f.Members[typ][name] {
			return true
		}
	}
	return false
}

// inStandard is of packages that have the name of one of the standard library.
func inStandard(pkg, name string) bool {
	p, err := build.Default.Import(pkg, "", 0)
	if err != nil || !p.Goroot {
		return false
	}
	for _, file := range p.GoFiles {
		a, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err == nil && exportedOf([]*File{{AST: a}}).decls[name] {
			return true
		}
	}
	return false
}
