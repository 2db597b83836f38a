package sniff

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainOwn: a reader's own format, and unrecognised bytes, give no text.
func TestExplainOwn(t *testing.T) {
	for _, c := range []struct {
		head string
		own  []Kind
		want string
	}{
		{"\x93NUMPY\x01\x00", []Kind{Npy}, ""},
		{"\x93NUMPY\x01\x00", []Kind{Npz}, "it seems to be an .npy file; npy.Load reads it"},
		{"", nil, "it is empty"},
		{"\x01\x02\xff", nil, ""},
		{"abc", nil, "it seems to be text; data.CSV reads tables, data.ReadText reads text"},
	} {
		if got := Explain([]byte(c.head), c.own...); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.head, c.own, got, c.want)
		}
	}
}

// TestTextIsText: text that begins like files of other formats is text.
func TestTextIsText(t *testing.T) {
	for _, s := range []string{"GGUF, explained", "BMI,age\n1,2\n", "PAR1,x", "MATLAB 5.0 MAT-file", "%PDF-1.7", "naïve", strings.Repeat("é", Len)} {
		if got := NotText([]byte(s)); got != "" {
			t.Errorf("%q: %s", s, got)
		}
		if got := NotTable([]byte(s)); got != "" {
			t.Errorf("%q as a table: %s", s, got)
		}
	}
	if NotTable([]byte("<html>")) == "" || NotText([]byte("<html>")) != "" {
		t.Error("a web page is text, and no table")
	}
	if NotText([]byte("PK\x03\x04\x14\x00")) == "" {
		t.Error("a zip archive is text")
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x")
	if err := os.WriteFile(file, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	if b, err := ReadFile(file); string(b) != "abc" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadFile(dir); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
	if _, err := Open(file + "y"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
