package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Snippet is a piece of code in a page: a block, or the text between two backquotes.
type Snippet struct {
	Line  int    // first line, from 1
	Lang  string // language of a block; "" if it has none
	Text  string
	Block bool
	After string // the text after a span on the page
}

// Pages are the documents that describe the current state, by path from root: those at the root and
// under docs, except experiments (docs/lab), the history (CHANGELOG.md), and texts of other
// authors.
func Pages(root string) (map[string]string, error) {
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "." || rel == "docs" || strings.HasPrefix(rel, "docs/") && rel != "docs/lab" {
				return nil
			}
			return filepath.SkipDir
		}
		if !strings.HasSuffix(rel, ".md") || rel == "CHANGELOG.md" || rel == "THIRD_PARTY.md" {
			return nil
		}
		text, err := os.ReadFile(p)
		pages[rel] = string(text)
		return err
	})
	return pages, err
}

var span = regexp.MustCompile("(?s)`([^`]+)`")

// Snippets are a page's, in its order: blocks between fences, blocks that are set in by
// four spaces behind an empty line, and spans.
func Snippets(text string) []Snippet {
	var found []Snippet
	var block *Snippet
	fence, prose := false, new(strings.Builder) // prose is the page without its blocks, with the same lines
	empty := true
	for i, l := range strings.Split(text, "\n") {
		lang, isFence := strings.CutPrefix(strings.TrimSpace(l), "```")
		setIn := strings.HasPrefix(l, "    ") && strings.TrimSpace(l) != ""
		inside := true
		switch {
		case isFence && fence:
			found, block, fence = append(found, *block), nil, false
		case isFence:
			block, fence = &Snippet{Line: i + 2, Lang: lang, Block: true}, true
		case fence:
			block.Text += l + "\n"
		case setIn && (block != nil || empty):
			if block == nil {
				block = &Snippet{Line: i + 1, Block: true}
			}
			block.Text += strings.TrimPrefix(l, "    ") + "\n"
		default:
			if block != nil {
				found, block = append(found, *block), nil
			}
			inside = false
		}
		if !inside {
			prose.WriteString(l)
		}
		prose.WriteByte('\n')
		empty = strings.TrimSpace(l) == ""
	}
	if block != nil {
		found = append(found, *block)
	}
	plain := prose.String()
	for _, m := range span.FindAllStringSubmatchIndex(plain, -1) {
		found = append(found, Snippet{
			Line:  1 + strings.Count(plain[:m[0]], "\n"),
			Text:  strings.Join(strings.Fields(plain[m[2]:m[3]]), " "),
			After: plain[m[1]:min(m[1]+40, len(plain))],
		})
	}
	return found
}

// A ShellCommand is one command of a snippet.
type ShellCommand struct {
	Line int
	Dir  string // the folder after a preceding cd, from the root
	Env  []string
	Args []string
}

// starts are the first words by which a span is recognised as a command. Blocks without a language
// contain only commands, if they contain these words.
var starts = regexp.MustCompile(`^(go (test|run|build|vet|generate|-C)\b|make [a-z]|(\./)?fusebench\w*( |$)|(\./)?scripts/|python3 |cd )`)

var (
	environment = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*=`)
	ofCommit    = regexp.MustCompile(`^\s*\)?,? of commit `)
)

// Commands are the shell commands of a snippet. Those about an older commit are left out.
func (s Snippet) Commands() (all []ShellCommand) {
	if s.Lang != "" && s.Lang != "sh" || ofCommit.MatchString(s.After) {
		return nil
	}
	for i, l := range strings.Split(s.Text, "\n") {
		dir := "."
		for part := range strings.SplitSeq(l, "&&") {
			c := ShellCommand{Line: s.Line + i, Dir: dir, Args: words(strings.TrimPrefix(strings.TrimSpace(part), "$ "))}
			for len(c.Args) > 0 && (c.Args[0] == "env" || environment.MatchString(c.Args[0])) {
				c.Env, c.Args = append(c.Env, c.Args[0]), c.Args[1:]
			}
			if !starts.MatchString(strings.Join(c.Args, " ")) {
				continue
			}
			if c.Args[0] == "cd" && len(c.Args) > 1 {
				dir = filepath.ToSlash(filepath.Join(dir, c.Args[1]))
			}
			all = append(all, c)
		}
	}
	return all
}

// words splits a line like a shell, as far as pages need it, up to a comment or a redirection.
func words(line string) (args []string) {
	var word []rune
	quote, some := rune(0), false
	end := func() {
		if some {
			args = append(args, string(word))
		}
		word, some = nil, false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word = append(word, r)
		case r == '\'' || r == '"':
			quote, some = r, true
		case r == ' ' || r == '\t':
			end()
		case !some && (r == '#' || r == '|' || r == '>' || r == '<'):
			return args
		case r == ';':
			end()
			return args
		default:
			word, some = append(word, r), true
		}
	}
	end()
	return args
}
