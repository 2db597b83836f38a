package debugflag

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Flags
	}{
		{"", Flags{}},
		{"lines", Flags{Lines: true}},
		{" lines , check,", Flags{Lines: true, Check: true}},
		{"trace=a=b.json", Flags{Trace: "a=b.json"}},
		{"help", Flags{Help: true}},
		{"perfmap", Flags{Perfmap: true}},
		{"report=a.html", Flags{Report: "a.html"}},
	} {
		if got, err := Parse(c.text); err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v", c.text, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	_, err := Parse("line,check=1,trace,=x,lines")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`"line"`, "help, lines, check, trace, report, log, perfmap", "check takes no value", "trace needs a value", `""`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %s:\n%v", want, err)
		}
	}
}

// TestHelp: every field has a key and a help text, and help prints them all.
func TestHelp(t *testing.T) {
	var b strings.Builder
	if err := PrintHelp(&b); err != nil {
		t.Fatal(err)
	}
	for _, k := range Keys() {
		if k.Help == "" || !strings.Contains(b.String(), k.Name) || !strings.Contains(b.String(), k.Help) {
			t.Errorf("key %q: help %q is not printed:\n%s", k.Name, k.Help, b.String())
		}
	}
}
