package main

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"

	"github.com/millrace-go/millrace"
	"github.com/millrace-go/millrace/internal/lint"
	_ "github.com/millrace-go/millrace/internal/testing/nocache" // leaves the user's cache alone
)

// root is the root of the repository, relative to this folder.
const root = "../.."

// TestDocuments checks that fusebench has everything that documents call: commands, flags, and
// the values of flags for variants, modes, devices and formats.
func TestDocuments(t *testing.T) {
	pages, err := lint.Pages(root)
	if err != nil || pages["README.md"] == "" {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	calls := 0
	for name, text := range pages {
		for _, s := range lint.Snippets(text) {
			for _, c := range s.Commands() {
				if args, ok := fusebenchArgs(c.Args); ok {
					calls++
					for _, what := range misused(args) {
						t.Errorf("%s:%d: fusebench %s: there is no %s", name, c.Line, strings.Join(args, " "), what)
					}
				}
			}
		}
	}
	if calls < 30 {
		t.Errorf("%d calls of fusebench found", calls)
	}
}

// fusebenchArgs returns the arguments of a call of fusebench: built, by go run, or by make.
func fusebenchArgs(args []string) ([]string, bool) {
	switch {
	case strings.HasPrefix(path.Base(args[0]), "fusebench"):
		return args[1:], true
	case args[0] == "go" && len(args) > 1 && args[1] == "run":
		if i := slices.Index(args, "./cmd/fusebench"); i >= 0 {
			return args[i+1:], true
		}
	case args[0] == "make" && len(args) > 2 && args[1] == "bench":
		if flags, ok := strings.CutPrefix(args[2], "ARGS="); ok {
			return append([]string{"gelu"}, strings.Fields(flags)...), true
		}
	}
	return nil, false
}

// anyWord matches a placeholder in a usage line: SUITE, FILE, [DIR].
var anyWord = regexp.MustCompile(`^[\[.]|^[A-Z]+[A-Z|.]*`)

// misused returns the commands, flags and values that do not exist.
func misused(args []string) (bad []string) {
	c := newCommand(streams{io.Discard, io.Discard})
	for len(args) > 0 && args[0] != "" && !strings.HasPrefix(args[0], "-") && len(c.Commands) > 0 {
		name := args[0]
		if anyWord.MatchString(name) { // any command
			name = c.Commands[0].Name
		}
		sub := c.Command(name)
		if sub == nil || sub.Hidden { // hidden: an earlier name
			return []string{"command " + args[0]}
		}
		c, args = sub, args[1:]
	}
	for i := 0; i < len(args); i++ {
		a := strings.Trim(args[i], "[]")
		if !strings.HasPrefix(a, "-") {
			if c.Name == "explain" && !anyWord.MatchString(a) && !slices.Contains(suiteNames(explained), a) {
				bad = append(bad, "suite "+a)
			}
			continue
		}
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		f := flagNamed(c, name)
		if f == nil {
			bad = append(bad, "flag -"+name)
			continue
		}
		if _, isBool := f.(*cli.BoolFlag); !isBool && !has && i+1 < len(args) {
			i++
			value = strings.Trim(args[i], "[]")
		}
		if value != "" && !anyWord.MatchString(value) {
			bad = append(bad, wrongValue(c, name, value)...)
		}
	}
	return bad
}

func flagNamed(c *cli.Command, name string) cli.Flag {
	for _, f := range c.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// wrongValue returns an error for a value that is not among a flag's names.
func wrongValue(c *cli.Command, flag, value string) (bad []string) {
	known := map[string][]string{"modes": {fused, unfused, tuned}, "format": formats(), "how": hows, "tier": {"0", "1", "auto"}}[flag]
	if s, err := suiteNamed(suites, []string{c.Name}); err == nil && flag == "variants" {
		known = s.variants(s.shape)
	}
	switch {
	case c.Name == "train" && flag == "variants":
		known = lessonNames
	case flag == "device" && c.Name == "start": // a device may have options, and commas in them
		for d := range strings.FieldsSeq(value) {
			bad = append(bad, wrongDevice(d)...)
		}
		return bad
	case flag == "device":
		for d := range strings.SplitSeq(value, ",") {
			bad = append(bad, wrongDevice(d)...)
		}
		return bad
	}
	for v := range strings.SplitSeq(value, ",") {
		if known != nil && !slices.Contains(known, v) {
			bad = append(bad, fmt.Sprintf("-%s %s", flag, v))
		}
	}
	return bad
}

func wrongDevice(text string) []string {
	o, err := millrace.ParseOptions(text)
	if err != nil {
		return []string{err.Error()}
	}
	if name := o.Device; !slices.Contains([]string{"cpu", "webgpu", "opengl", "vulkan", "null"}, name) {
		return []string{"device " + name}
	}
	return nil
}

func TestMisused(t *testing.T) {
	for line, want := range map[string]string{
		"gelu -device cpu -variants custom,erf -modes fused": "",
		"gelu --runs=3":                       "",
		"gelo":                                "command gelo",
		"gelu -rums 3":                        "flag -rums",
		"roof -threads 2":                     "command roof",
		"gelu -variants custard":              "-variants custard",
		"gelu -device gpu":                    "device gpu",
		"gelu -device cpu:tear=0":             "unknown key",
		"gelu -modes fussed":                  "-modes fussed",
		"gelu -format xls":                    "-format xls",
		"plans gen -o DIR [-pkg=NAME] BUNDLE": "",
		"plans gem -o DIR":                    "command gem",
		"SUITE -device cpu":                   "",
		"explain attention":                   "",
		"explain attentive":                   "suite attentive",
		"train -how bount":                    "-how bount",
		"start -device \"cpu:compile=c,tier=1 cpu:compile=off\"": "",
	} {
		c := lint.Snippet{Text: "fusebench " + line}.Commands()
		if len(c) != 1 {
			t.Fatalf("%s: %d commands", line, len(c))
		}
		args, _ := fusebenchArgs(c[0].Args)
		if got := misused(args); want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
