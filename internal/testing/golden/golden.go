package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in golden files")

const separator = "----"

// Case is one case of a file.
type Case struct {
	File  string
	Line  int // of the command
	Cmd   string
	Args  []string
	Input string // lines, each ended
	want  string
	head  []string // comments and blank lines before the command, unchanged
}

// Handler computes the output of a case. It reports faults of the case itself through t; an
// expected error belongs in the output.
type Handler func(t *testing.T, c *Case) string

// Run runs every .txt file below dir, one subtest each, with the handler of each case's command. To
// keep the files current it fails for other files (fuzz corpora apart), for commands without a
// handler and for unused handlers.
func Run(t *testing.T, dir string, handlers map[string]Handler) {
	t.Helper()
	used := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "fuzz":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case filepath.Ext(path) != ".txt":
			t.Errorf("%s: no test reads this file", path)
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		t.Run(strings.TrimSuffix(filepath.ToSlash(rel), ".txt"), func(t *testing.T) { runFile(t, path, handlers, used) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for cmd := range handlers {
		if !used[cmd] {
			t.Errorf("no case in %s uses the command %q", dir, cmd)
		}
	}
}

func runFile(t *testing.T, path string, handlers map[string]Handler, used map[string]bool) {
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cases, tail, err := parse(path, string(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Errorf("%s: no cases", path)
	}
	for i := range cases {
		c := &cases[i]
		h := handlers[c.Cmd]
		if h == nil {
			t.Errorf("%s:%d: unknown command %q", c.File, c.Line, c.Cmd)
			continue
		}
		used[c.Cmd] = true
		got := h(t, c)
		if got != "" && !strings.HasSuffix(got, "\n") {
			got += "\n"
		}
		if got == c.want {
			continue
		}
		if !*update {
			t.Errorf("%s:%d: %s: got\n%swant\n%s(run with -update to rewrite)", c.File, c.Line, c.Cmd, got, c.want)
		}
		c.want = got
	}
	if !*update || t.Failed() {
		return
	}
	if out := format(cases, tail); out != string(src) {
		if err := os.WriteFile(path, []byte(out), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// parse splits a file into cases. tail is the text after the last one.
func parse(path, src string) (cases []Case, tail []string, err error) {
	lines := strings.Split(strings.TrimSuffix(src, "\n"), "\n")
	if src == "" {
		lines = nil
	}
	var head []string
	for i := 0; i < len(lines); {
		if lines[i] == "" || lines[i][0] == '#' {
			head = append(head, lines[i])
			i++
			continue
		}
		words := strings.Fields(lines[i])
		c := Case{File: path, Line: i + 1, head: head}
		if len(words) == 0 {
			return nil, nil, fmt.Errorf("%s:%d: a line of blanks is not a command", path, i+1)
		}
		c.Cmd, c.Args = words[0], words[1:]
		head = nil
		for i++; i < len(lines) && lines[i] != separator; i++ {
			c.Input += lines[i] + "\n"
		}
		if i == len(lines) {
			return nil, nil, fmt.Errorf("%s:%d: no %s after the input", path, c.Line, separator)
		}
		i++
		doubled := i < len(lines) && lines[i] == separator
		if doubled {
			i++
		}
		for ; i < len(lines); i++ {
			if doubled && lines[i] == separator && i+1 < len(lines) && lines[i+1] == separator {
				i += 2
				doubled = false
				break
			}
			if !doubled && lines[i] == "" {
				break
			}
			c.want += lines[i] + "\n"
		}
		if doubled {
			return nil, nil, fmt.Errorf("%s:%d: output is not closed by two lines of %s", path, c.Line, separator)
		}
		cases = append(cases, c)
	}
	return cases, head, nil
}

func format(cases []Case, tail []string) string {
	var b strings.Builder
	for _, c := range cases {
		for _, l := range c.head {
			b.WriteString(l + "\n")
		}
		b.WriteString(strings.Join(append([]string{c.Cmd}, c.Args...), " ") + "\n")
		b.WriteString(c.Input + separator + "\n")
		if strings.HasPrefix(c.want, "\n") || strings.Contains(c.want, "\n\n") {
			b.WriteString(separator + "\n" + c.want + separator + "\n" + separator + "\n")
			continue
		}
		b.WriteString(c.want)
	}
	for _, l := range tail {
		b.WriteString(l + "\n")
	}
	return b.String()
}
