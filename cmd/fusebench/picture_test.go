package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicture checks that the picture is drawn besides the result, and that its path is printed.
func TestPicture(t *testing.T) {
	for _, end := range []string{".svg", ".html"} {
		file := filepath.Join(t.TempDir(), "p"+end)
		code, out, errs := fusebench("gelu", "-shape", "4,64", "-device", "cpu:compile=off", "-runs", "2", "-warmup", "0", "-budget", "1s", "-picture", file)
		if code != 0 || !strings.Contains(out, "On cpu:compile=off, fusing makes ") || !strings.Contains(errs, "a picture of this: "+file) {
			t.Errorf("exit %d: %s\n%s", code, errs, out)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<svg", "custom, unfused", "a copy of the same bytes"} {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s: no %q", end, want)
			}
		}
		for _, not := range []string{"<script", "http-equiv", `src="http`, `href="http`, "url(http"} {
			if strings.Contains(string(data), not) {
				t.Errorf("%s fetches or runs something: %q", end, not)
			}
		}
	}
	if code, _, errs := fusebench("gelu", "-picture", "p.png"); code != exitUsage || !strings.Contains(errs, ".html or .svg") {
		t.Errorf("exit %d: %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "none", "p.svg")
	code, out, errs := fusebench("gelu", "-shape", "4,64", "-device", "cpu:compile=off", "-runs", "1", "-warmup", "0", "-budget", "1s", "-picture", file)
	if code != exitUsage || !strings.Contains(errs, "no such file") || out != "" { // this error is found before anything is timed
		t.Errorf("a picture that cannot be written: exit %d: %s", code, errs)
	}
}

// TestSVG checks that bars end at their times, and that a report that cannot be drawn is an
// error.
func TestSVG(t *testing.T) {
	draw := func(r *Report) ([]byte, error) {
		var b bytes.Buffer
		err := writeSVG(&b, r)
		return b.Bytes(), err
	}
	for _, r := range []*Report{sample(), products()} {
		svg, err := draw(r)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(svg))
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%v in\n%s", err, svg)
		}
	}
	if _, err := draw(&Report{}); err == nil {
		t.Error("nothing was drawn")
	}
	bad := scaled("erf", 6, math.Inf(1))
	if _, err := draw(bad); err == nil {
		t.Error("a time without end was drawn")
	}
	ticks := decades{}.Ticks(0.3, 21)
	var labels []string
	for _, k := range ticks {
		labels = append(labels, k.Label)
	}
	if got := strings.Join(labels, " "); got != "0.5 1 2 5 10 20" {
		t.Errorf("ticks %s", got)
	}
}

// TestHelpNames checks that help lists the suites and variants.
func TestHelpNames(t *testing.T) {
	_, out, _ := fusebench("help")
	for _, s := range suites {
		for _, want := range append(s.variants(s.shape), s.name) {
			if !strings.Contains(out, want) {
				t.Errorf("help does not name %q", want)
			}
		}
	}
	if code, out, errs := fusebench("completion", "bash"); code != 0 || !strings.Contains(out, "complete") {
		t.Errorf("completion: exit %d: %s%s", code, out, errs)
	}
	if code, out, _ := fusebench("gelu", "--generate-shell-completion"); code != 0 || strings.Contains(out, "error") {
		t.Errorf("completing: exit %d: %s", code, out)
	}
}
