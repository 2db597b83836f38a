package golden

import (
	"os"
	"strings"
	"testing"
)

func echo(_ *testing.T, c *Case) string {
	if len(c.Args) == 0 {
		return c.Input
	}
	return strings.Join(c.Args, " ") + "\n" + c.Input
}

func TestRun(t *testing.T) {
	Run(t, "testdata", map[string]Handler{
		"echo": echo,
		"gap":  func(*testing.T, *Case) string { return "above\n\nbelow" },
	})
}

func TestFormatKeepsFile(t *testing.T) {
	src, err := os.ReadFile("testdata/echo.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases, tail, err := parse("echo.txt", string(src))
	if err != nil {
		t.Fatal(err)
	}
	if got := format(cases, tail); got != string(src) {
		t.Errorf("rewritten as\n%s", got)
	}
	cases[0].want = "new\n"
	if got := format(cases, tail); !strings.Contains(got, "two\n----\nnew\n\n# An empty") {
		t.Errorf("update wrote\n%s", got)
	}
}

func TestParseFaults(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"cmd\ninput\n", "f:1: no ---- after the input"},
		{"# c\ncmd\n----\n----\nout\n", "f:2: output is not closed"},
		{"  \n", "f:1: a line of blanks"},
	} {
		if _, _, err := parse("f", c.src); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parse(%q): %v, want %s", c.src, err, c.want)
		}
	}
}
