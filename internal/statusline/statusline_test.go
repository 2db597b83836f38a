package statusline

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// TestElsewhere: output that is no terminal gets whole lines, now and then, without control codes.
func TestElsewhere(t *testing.T) {
	var b bytes.Buffer
	l := New(&b, time.Hour)
	for i := range 100 {
		l.Say("step %d", i)
	}
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
	l.End()
	if b.String() != "step 99\n" {
		t.Errorf("%q", b.String())
	}
	l.Say("more")
	l.Clear()
	l.End()
	l = New(&b, 0)
	l.Say("a")
	l.Say("b")
	l.End()
	if b.String() != "step 99\na\nb\n" {
		t.Errorf("%q", b.String())
	}
}

// TestFile: a file is no terminal; the null device and a terminal may get control codes.
func TestFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := New(f, 0)
	l.Say("x")
	l.Clear()
	if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
	var b bytes.Buffer
	l = New(&b, 0)
	l.live = true
	l.Say("one")
	l.Say("two")
	l.Clear()
	l.Say("three")
	l.End()
	if got := strings.ReplaceAll(b.String(), "\r\033[K", "|"); got != "|one|two||three\n" {
		t.Errorf("%q", got)
	}
}
